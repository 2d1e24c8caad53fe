-- Ends a batch: its rows are deleted. The next one may begin.
-- Locks: its row. Index: archive_batches_pkey.
UPDATE semel.archive_batches AS b
SET done_at = clock_timestamp(),
    event_ids = NULL
WHERE b.id = $1
  AND b.done_at IS NULL
