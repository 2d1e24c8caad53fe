-- Notes that the object of a batch was read back and is right. No row: somebody
-- else gave the batch up, since its rows had changed before there was an object.
-- Locks: its row. Index: archive_batches_pkey.
UPDATE semel.archive_batches AS b
SET verified_at = coalesce(b.verified_at, clock_timestamp())
WHERE b.id = $1
RETURNING b.id
