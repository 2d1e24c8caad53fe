-- Puts a message in front of a person. Where it was before (replayed in vain, or
-- purged and dead again) the same row is opened again and shows this copy: that
-- is what a replay would run. Only first_failed_at, owner and the sums stay; where
-- somebody has set one of these to all that a column can hold, that is what it stays.
-- Locks the row. Index: dead_letters_consumer_id_message_id_idx.
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
ON CONFLICT (consumer_id, message_id) WHERE reason <> 'mismatch'
DO UPDATE SET
    state = 'open',
    resolved_at = NULL,
    redacted_at = NULL,
    count = least(d.count, 9223372036854775806) + 1,
    attempts = least(d.attempts::bigint + EXCLUDED.attempts, 2147483647),
    reason = EXCLUDED.reason,
    fingerprint = EXCLUDED.fingerprint,
    last_failed_at = EXCLUDED.last_failed_at,
    errors = EXCLUDED.errors,
    message_text = EXCLUDED.message_text,
    raw_id = EXCLUDED.raw_id,
    message_type = EXCLUDED.message_type,
    key = EXCLUDED.key,
    message_version = EXCLUDED.message_version,
    correlation_id = EXCLUDED.correlation_id,
    causation_id = EXCLUDED.causation_id,
    source = EXCLUDED.source,
    content_type = EXCLUDED.content_type,
    occurred_at = EXCLUDED.occurred_at,
    payload = EXCLUDED.payload,
    header_names = EXCLUDED.header_names,
    header_values = EXCLUDED.header_values,
    header_tags = EXCLUDED.header_tags,
    origin_transport = EXCLUDED.origin_transport,
    origin_topic = EXCLUDED.origin_topic,
    origin_partition = EXCLUDED.origin_partition,
    origin_offset = EXCLUDED.origin_offset,
    origin_position = EXCLUDED.origin_position,
    origin_exchange = EXCLUDED.origin_exchange,
    origin_routing_key = EXCLUDED.origin_routing_key,
    origin_time = EXCLUDED.origin_time,
    origin_redelivered = EXCLUDED.origin_redelivered,
    altered = EXCLUDED.altered,
    owner = coalesce(d.owner, EXCLUDED.owner)
RETURNING id, count;
