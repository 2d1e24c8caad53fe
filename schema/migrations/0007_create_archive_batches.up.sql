-- semel: oldest-binary 1
--
-- The archive: which published events go, or went, to which object. A new table only.

CREATE TABLE semel.archive_batches (
    begun_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    archived_at  timestamptz,
    retain_until timestamptz,
    verified_at  timestamptz,
    done_at      timestamptz,
    first_seq    bigint,
    last_seq     bigint,
    id           uuid        NOT NULL,
    events       int,
    object       text,
    sha256       bytea,
    event_ids    uuid[],
    CONSTRAINT archive_batches_pkey PRIMARY KEY (id),
    CONSTRAINT archive_batches_named CHECK (
        num_nulls(archived_at, retain_until, first_seq, last_seq, events, object, sha256) IN (0, 7)
    )
);

COMMENT ON TABLE semel.archive_batches IS 'What goes to the archive before it is purged, one row an object. Rows that are done stay: they say what is in the archive.';
COMMENT ON COLUMN semel.archive_batches.archived_at IS 'When it was committed which events go into the object, before anything was written there. NULL: not yet.';
COMMENT ON COLUMN semel.archive_batches.retain_until IS 'Until when the object must stay in the archive. Nothing here deletes it afterwards.';
COMMENT ON COLUMN semel.archive_batches.verified_at IS 'When the object was read back and found to be right. No event is deleted before.';
COMMENT ON COLUMN semel.archive_batches.done_at IS 'When its events were deleted.';
COMMENT ON COLUMN semel.archive_batches.sha256 IS 'Of the uncompressed lines of the object.';
COMMENT ON COLUMN semel.archive_batches.event_ids IS 'The events that are in the object, until they are deleted.';

-- One batch at a time, whoever purges: the next one begins when it is done, and so
-- no event goes into two.
CREATE UNIQUE INDEX archive_batches_open_idx
    ON semel.archive_batches ((true))
    WHERE done_at IS NULL;
