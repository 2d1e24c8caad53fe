-- The next events of a run of shards behind seq $1, that nothing holds back.
-- $5 is the horizon, see horizon.go. $1 is only a hint: now and then it is 0.
-- Locks: nothing. Index: outbox_ready_idx.
SELECT
    o.seq, o.id, o.shard, o.aggregatetype, o.aggregateid, o.type, o.version, o.payload, o.content_type,
    CASE WHEN isfinite(o.occurred_at) THEN o.occurred_at ELSE o.created_at END, o.correlation_id, o.causation_id, o.source,
    o.header_names, o.header_values, o.header_tags, o.attempts
FROM semel.outbox AS o
WHERE o.seq > $1
  AND o.seq <= $5
  AND o.shard BETWEEN $2 AND $3
  AND o.published_at IS NULL
  AND o.next_attempt_at IS NULL
  AND o.quarantined_at IS NULL
  AND o.discarded_at IS NULL
ORDER BY o.seq
LIMIT $4
