-- The events in a state (empty: in any), highest id first.
-- Locks: nothing. Index: outbox_pkey, read backwards until there are enough.
SELECT
    o.seq, o.id, o.shard, o.aggregatetype, o.aggregateid, o.type, o.version, o.content_type, o.occurred_at,
    o.correlation_id, o.causation_id, o.source, o.created_at, o.published_at, o.next_attempt_at,
    o.quarantined_at, o.discarded_at, o.first_failed_at, o.attempts, o.last_error,
    NULL::bytea AS payload, NULL::text[] AS header_names, NULL::bytea[] AS header_values, NULL::text AS header_tags
FROM semel.outbox AS o
WHERE (
    $5::text = ''
    OR ($5 = 'published' AND o.published_at IS NOT NULL)
    OR ($5 = 'discarded' AND o.discarded_at IS NOT NULL AND o.published_at IS NULL)
)
  AND ($1::text = '' OR o.aggregatetype = $1)
  AND ($2::text = '' OR o.aggregateid = $2)
  AND ($3::interval = interval '0' OR o.created_at <= clock_timestamp() - $3)
ORDER BY o.id DESC
LIMIT $4
