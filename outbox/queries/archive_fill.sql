-- Commits what is in a batch, before anything is written to the archive. No row:
-- somebody else was faster.
-- Locks: its row. Index: archive_batches_pkey.
UPDATE semel.archive_batches AS b
SET event_ids = $2::uuid[],
    events = cardinality($2::uuid[]),
    sha256 = $3,
    first_seq = $4,
    last_seq = $5,
    object = to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYY/MM/DD/') || $6::text,
    archived_at = statement_timestamp(),
    retain_until = statement_timestamp() + $7::interval
WHERE b.id = $1
  AND b.event_ids IS NULL
  AND b.done_at IS NULL
RETURNING b.object
