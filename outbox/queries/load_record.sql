-- One event with all that is known of it.
-- Locks: nothing. Index: outbox_pkey.
SELECT
    o.seq, o.id, o.shard, o.aggregatetype, o.aggregateid, o.type, o.version, o.content_type, o.occurred_at,
    o.correlation_id, o.causation_id, o.source, o.created_at, o.published_at, o.next_attempt_at,
    o.quarantined_at, o.discarded_at, o.first_failed_at, o.attempts, o.last_error,
    o.payload, o.header_names, o.header_values, o.header_tags
FROM semel.outbox AS o
WHERE o.id = $1
