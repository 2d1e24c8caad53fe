-- semel: oldest-binary 1
--
-- Both edges of a payment service: calls to the outside, and the highest version
-- handled of each entity. New tables, and for an instant a lock on the inbox: a payload
-- of a few kilobytes stays in its row from then on, which is written and deleted once
-- instead of twice, and is compressed in a tenth of the time where the server was
-- built with LZ4.

-- Wide and aligned columns first.
CREATE TABLE semel.calls (
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until     timestamptz,
    deadline        timestamptz,
    sent_first_at   timestamptz,
    epoch           bigint      NOT NULL DEFAULT 1,
    message_id      uuid        NOT NULL,
    lease_owner     uuid,
    consumer_id     int         NOT NULL,
    generation      int         NOT NULL DEFAULT 1,
    attempts        int         NOT NULL DEFAULT 0,
    state           smallint    NOT NULL DEFAULT 1,
    step            text        NOT NULL,
    message_text    text,
    idempotency_key text        NOT NULL,
    result          bytea,
    result_codec    text,
    error           text,
    resolved_by     text,
    CONSTRAINT calls_pkey PRIMARY KEY (consumer_id, message_id, step)
) WITH (
    -- Each row is written three times: intent, result, deletion.
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);

COMMENT ON TABLE semel.calls IS 'Calls to the outside that messages made, one row a step: the intent before, the result after.';
COMMENT ON COLUMN semel.calls.lease_until IS 'Until when lease_owner has the call in hand. NULL: nobody has.';
COMMENT ON COLUMN semel.calls.deadline IS 'When the last attempt has ended for certain, also one of a process that died.';
COMMENT ON COLUMN semel.calls.sent_first_at IS 'When the provider first saw this idempotency key, at the earliest: it forgets it some time after.';
COMMENT ON COLUMN semel.calls.epoch IS 'Rises with each owner: what an earlier one writes is refused.';
COMMENT ON COLUMN semel.calls.generation IS 'Part of the idempotency key. It rises only after a failure that the provider has told, and by a person''s decision.';
COMMENT ON COLUMN semel.calls.state IS 'A number, see call_state_name(smallint).';
COMMENT ON COLUMN semel.calls.message_text IS 'The message''s id as the producer wrote it, where it is no UUID.';
COMMENT ON COLUMN semel.calls.result_codec IS 'The key under which the result was encoded. NULL: it stands as it came.';
COMMENT ON COLUMN semel.calls.resolved_by IS 'Who decided on it last, empty if nobody knows who. NULL: no person has.';
COMMENT ON COLUMN semel.calls.error IS 'What the last attempt said. Of a call that is done: why its result was not kept.';

-- What nobody knows the end of: few, for those who look and for the purge.
CREATE INDEX calls_open_idx
    ON semel.calls (consumer_id, message_id)
    WHERE state IN (1, 4);

CREATE FUNCTION semel.call_state_name(state smallint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog
    RETURN CASE state
        WHEN 1 THEN 'started'
        WHEN 2 THEN 'done'
        WHEN 3 THEN 'failed'
        WHEN 4 THEN 'unknown'
        WHEN 5 THEN 'ready'
        ELSE 'state ' || state
    END;

COMMENT ON FUNCTION semel.call_state_name(smallint) IS 'What has become of a call: started (nobody has told its end yet), done, failed (the provider or a person said so), unknown (a person has to look), ready (it may be made under its key: nothing was sent, or a person wants it again).';

CREATE TABLE semel.key_versions (
    version     bigint      NOT NULL,
    previous    bigint,
    known_from  bigint      NOT NULL,
    gaps        bigint      NOT NULL DEFAULT 0,
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    message_id  uuid        NOT NULL,
    key_id      uuid        NOT NULL,
    consumer_id int         NOT NULL,
    kind        text        NOT NULL DEFAULT '',
    key         bytea       NOT NULL,
    CONSTRAINT key_versions_pkey PRIMARY KEY (consumer_id, key_id)
) WITH (
    fillfactor = 80, -- room for the next version on the same page
    autovacuum_vacuum_scale_factor = 0.05
);

COMMENT ON TABLE semel.key_versions IS 'The highest version that each consumer handled of each entity: what is older is superseded.';
COMMENT ON COLUMN semel.key_versions.version IS 'A sequence number, or microseconds since 1970 where versions are times.';
COMMENT ON COLUMN semel.key_versions.previous IS 'The version before it.';
COMMENT ON COLUMN semel.key_versions.known_from IS 'Versions up to this one were never waited for.';
COMMENT ON COLUMN semel.key_versions.gaps IS 'Versions that were passed over and have not come since, where they are counted.';
COMMENT ON COLUMN semel.key_versions.message_id IS 'The message that brought the version.';
COMMENT ON COLUMN semel.key_versions.key_id IS 'Hash of kind and key: an index entry must not be as long as a key may be.';
COMMENT ON COLUMN semel.key_versions.kind IS 'What the entity is, where a consumer hears of several kinds.';

-- No column of it changes with a version that follows its last: such updates stay on their page.
CREATE INDEX key_versions_consumer_id_idx
    ON semel.key_versions (consumer_id)
    WHERE gaps > 0;

ALTER TABLE semel.inbox_messages SET (toast_tuple_target = 3072);

DO $$
BEGIN
    ALTER TABLE semel.inbox_messages ALTER COLUMN payload SET COMPRESSION lz4;
EXCEPTION
    WHEN feature_not_supported THEN NULL; -- the default stays
END
$$;
