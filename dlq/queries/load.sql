-- One dead letter with all that is kept of the message, and how that ended where it is
-- resolved. A mismatch is claimed again under the hash of its id and fingerprint.
-- Locks nothing. Index: dead_letters_pkey, processed_messages_pkey.
SELECT
    d.id, coalesce(c.name, '') AS consumer, d.state, coalesce(d.owner, '') AS owner, coalesce(d.decided_by, '') AS decided_by,
    d.count, d.created_at, d.resolved_at, d.redacted_at,
    d.consumer_id, d.message_id, d.fingerprint, d.reason, d.attempts, d.first_failed_at,
    d.last_failed_at, d.errors, p.outcome,
    d.message_text, d.raw_id, d.message_type, d.key, d.message_version, d.correlation_id,
    d.causation_id, d.source, d.content_type, d.occurred_at,
    d.payload, d.header_names, d.header_values, d.header_tags,
    d.origin_transport, d.origin_topic, d.origin_partition, d.origin_offset, d.origin_position,
    d.origin_exchange, d.origin_routing_key, d.origin_time, d.origin_redelivered, d.altered
FROM semel.dead_letters AS d
LEFT JOIN semel.consumers AS c ON c.id = d.consumer_id
LEFT JOIN semel.processed_messages AS p
    ON d.state = 'resolved'
    AND p.consumer_id = d.consumer_id
    AND p.message_id = CASE WHEN d.reason <> 'mismatch' THEN d.message_id ELSE (
        SELECT encode(set_byte(set_byte(h, 6, (get_byte(h, 6) & 15) | 128), 8, (get_byte(h, 8) & 63) | 128), 'hex')::uuid
        FROM substring(sha256(int4send(16) || uuid_send(d.message_id) || int4send(8) || int8send(d.fingerprint)) FOR 16) AS h
    ) END
WHERE d.id = $1;
