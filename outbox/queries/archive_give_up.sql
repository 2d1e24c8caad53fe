-- Gives a batch up whose rows have changed before its object was written. Nothing of
-- it is deleted: that begins when it is verified.
-- Locks: its row. Index: archive_batches_pkey.
DELETE FROM semel.archive_batches AS b
WHERE b.id = $1
  AND b.verified_at IS NULL
