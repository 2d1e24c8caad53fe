-- One dead letter with all that is kept of the message. Locks nothing.
-- Index: dead_letters_pkey.
SELECT
    d.id, coalesce(c.name, '') AS consumer, d.state, coalesce(d.owner, '') AS owner, coalesce(d.decided_by, '') AS decided_by,
    d.count, d.created_at, d.resolved_at, d.redacted_at,
    d.consumer_id, d.message_id, d.fingerprint, d.reason, d.attempts, d.first_failed_at,
    d.last_failed_at, d.errors,
    d.message_text, d.raw_id, d.message_type, d.key, d.message_version, d.correlation_id,
    d.causation_id, d.source, d.content_type, d.occurred_at,
    d.payload, d.header_names, d.header_values, d.header_tags,
    d.origin_transport, d.origin_topic, d.origin_partition, d.origin_offset, d.origin_position,
    d.origin_exchange, d.origin_routing_key, d.origin_time, d.origin_redelivered, d.altered
FROM semel.dead_letters AS d
LEFT JOIN semel.consumers AS c ON c.id = d.consumer_id
WHERE d.id = $1;
