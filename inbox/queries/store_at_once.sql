-- Claims a message that no other of its key waits for, and stores it, in a
-- transaction of its own. No row: it was claimed before, and nothing is written.
-- 55P03: in flight elsewhere.
-- Locks: the key of the claim. Index: processed_messages_pkey, inbox_messages_pkey.
WITH claimed AS (
    INSERT INTO semel.processed_messages (consumer_id, message_id, fingerprint, message_text, outcome)
    SELECT $1, $3, $4, $33::text, 4 -- stored
    WHERE set_config('lock_timeout', $34, true) IS NOT NULL
    ON CONFLICT (consumer_id, message_id) DO NOTHING
    RETURNING message_id
)
INSERT INTO semel.inbox_messages (
    consumer_id, key_hash, message_id, fingerprint, attempts, first_failed_at, errors,
    last_failed_at, ready_at,
    message_text, raw_id, message_type, key, message_version, correlation_id, causation_id, source,
    content_type, occurred_at,
    payload, header_names, header_values, header_tags,
    origin_transport, origin_topic, origin_partition, origin_offset, origin_position,
    origin_exchange, origin_routing_key, origin_time, origin_redelivered, altered
)
SELECT
    $1::int, $2::bigint, $3::uuid, $4::bigint, $5::int, clock_timestamp() - $6::interval, $7::text[],
    CASE WHEN $5 > 0 THEN clock_timestamp() END, clock_timestamp() + $8::interval,
    $9::text, $10::bytea, $11::text, $12::bytea, $13::bigint, $14::text, $15::text, $16::text,
    $17::text, $18::timestamptz,
    $19::bytea, $20::text[], $21::bytea[], $22::text,
    $23::text, $24::text, $25::int, $26::bigint, $27::text,
    $28::text, $29::text, $30::timestamptz, $31::boolean, $32::text
FROM claimed
ON CONFLICT (consumer_id, message_id) DO NOTHING
