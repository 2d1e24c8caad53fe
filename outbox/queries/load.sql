-- Events by id that are still to be published.
-- Locks: nothing. Index: outbox_pkey.
SELECT
    o.seq, o.id, o.shard, o.aggregatetype, o.aggregateid, o.type, o.version, o.payload, o.content_type,
    CASE WHEN isfinite(o.occurred_at) THEN o.occurred_at ELSE o.created_at END, o.correlation_id, o.causation_id, o.source,
    o.header_names, o.header_values, o.header_tags, o.attempts
FROM semel.outbox AS o
WHERE o.id = ANY ($1::uuid[])
  AND o.published_at IS NULL
  AND o.quarantined_at IS NULL
  AND o.discarded_at IS NULL
ORDER BY o.seq
