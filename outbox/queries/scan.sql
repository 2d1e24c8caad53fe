-- As read.sql, but only what tells whether an event is held back: for when most are.
-- Locks: nothing. Index: outbox_ready_idx.
SELECT o.seq, o.id, o.aggregatetype, o.aggregateid
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
