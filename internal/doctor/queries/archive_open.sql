-- The object that events are on their way to, if they have been for more than half
-- a day: two turns of a purge.
-- Locks: nothing. Index: archive_batches_open_idx.
SELECT b.object, b.events, b.verified_at IS NOT NULL, extract(epoch FROM clock_timestamp() - b.archived_at)::bigint
FROM semel.archive_batches AS b
WHERE b.done_at IS NULL
  AND b.archived_at < clock_timestamp() - interval '12 hours'
