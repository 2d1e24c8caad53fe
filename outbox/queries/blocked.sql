-- The events of a run of shards that hold their aggregates back, of each
-- aggregate the first one first: it waits for its next attempt, or ($4) it is in
-- quarantine. They are read page by page: $5 and $6 are where the one before ended. A
-- time may be infinite: somebody has parked the event.
-- Locks: nothing. Index: outbox_blocked_idx.
SELECT
    o.aggregatetype, o.aggregateid, o.shard, o.seq, o.id, o.lease_attempts, coalesce(o.lease_epoch, 0), o.quarantined_at IS NOT NULL,
    coalesce(least(greatest(extract(epoch FROM o.next_attempt_at) - extract(epoch FROM clock_timestamp()), 0), 1e8), 0)::float8
FROM semel.outbox AS o
WHERE o.shard BETWEEN $1 AND $2
  AND o.published_at IS NULL
  AND o.discarded_at IS NULL
  AND (o.next_attempt_at IS NOT NULL OR o.quarantined_at IS NOT NULL)
  AND ($4 OR o.quarantined_at IS NULL)
  AND (o.shard, o.seq) > ($5::smallint, $6::bigint)
ORDER BY o.shard, o.seq
LIMIT $3
