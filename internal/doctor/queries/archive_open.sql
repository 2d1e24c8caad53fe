-- The object that events are on their way to, if they have been for more than half
-- a day: two turns of a purge. So they are from a time that somebody has set far ahead
-- of the clock: 0 seconds. What is set before all that we can have done is from 2000.
-- Locks: nothing. Index: archive_batches_open_idx.
SELECT b.object, b.events, b.verified_at IS NOT NULL, extract(epoch FROM clock_timestamp() - least(greatest(b.archived_at, '2000-01-01'), clock_timestamp()))::bigint
FROM semel.archive_batches AS b
WHERE b.done_at IS NULL
  AND b.archived_at NOT BETWEEN clock_timestamp() - interval '12 hours' AND clock_timestamp() + interval '12 hours'
