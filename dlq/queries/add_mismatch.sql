-- Puts a message whose id was seen with another payload in front of a person,
-- once for each payload. A further copy is counted and changes nothing else: a
-- person may have decided about this very payload, and it is the same.
-- Locks the row. Index: dead_letters_consumer_id_message_id_fingerprint_idx.
INSERT INTO semel.dead_letters AS d (
    consumer_id, message_id, fingerprint, reason, attempts, first_failed_at, last_failed_at, errors,
    message_text, raw_id, message_type, key, message_version, correlation_id, causation_id, source,
    content_type, occurred_at,
    payload, header_names, header_values, header_tags,
    origin_transport, origin_topic, origin_partition, origin_offset, origin_position,
    origin_exchange, origin_routing_key, origin_time, origin_redelivered, altered, owner
) VALUES (
    $1, $2, $3, $4, $5, coalesce($6::timestamptz, clock_timestamp()),
    coalesce($7::timestamptz, clock_timestamp()), $8,
    $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
    $19, $20, $21, $22,
    $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, nullif($33, '')
)
ON CONFLICT (consumer_id, message_id, fingerprint) WHERE reason = 'mismatch'
DO UPDATE SET
    count = least(d.count, 9223372036854775806) + 1,
    last_failed_at = EXCLUDED.last_failed_at
RETURNING id, count;
