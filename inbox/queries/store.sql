-- Stores a message behind those of its key. It is ready after $8, unless it is
-- parked, or $9 says that it waits while its key has others. No row: the key holds
-- $10 already (0: any number), the message is there, or $36 asks for a claim of this
-- very transaction and it has none.
-- A snapshot from before the key's lock may show others that are gone: then it is
-- ready, and whoever takes it looks again.
-- A place that is none was set by hand: they begin anew behind it, and the key has room.
-- The caller holds the key's lock. Locks: the new row.
-- Index: inbox_messages_consumer_id_key_hash_seq_idx, inbox_messages_pkey.
WITH first AS (
    SELECT greatest(least(coalesce(i.place, 0), 4611686018427387903), 0) AS place
    FROM semel.inbox_messages AS i
    WHERE i.consumer_id = $1
        AND i.key_hash = $2
    ORDER BY i.seq
    LIMIT 1
), last AS (
    SELECT CASE WHEN i.place BETWEEN 1 AND 4611686018427387903 THEN i.place ELSE 0 END AS place
    FROM semel.inbox_messages AS i
    WHERE i.consumer_id = $1
        AND i.key_hash = $2
    ORDER BY i.seq DESC
    LIMIT 1
)
INSERT INTO semel.inbox_messages (
    consumer_id, key_hash, message_id, fingerprint, attempts, first_failed_at, errors,
    last_failed_at, ready_at, place,
    parked_at, dead_letter_id,
    message_text, raw_id, message_type, key, message_version, correlation_id, causation_id, source,
    content_type, occurred_at,
    payload, header_names, header_values, header_tags,
    origin_transport, origin_topic, origin_partition, origin_offset, origin_position,
    origin_exchange, origin_routing_key, origin_time, origin_redelivered, altered
)
SELECT
    $1::int, $2::bigint, $3::uuid, $4::bigint, $5::int, clock_timestamp() - $6::interval, $7::text[],
    CASE WHEN $5 > 0 THEN clock_timestamp() END,
    CASE
        WHEN $11::bigint IS NOT NULL THEN NULL
        WHEN $9::boolean AND EXISTS (SELECT FROM last) AND current_setting('transaction_isolation') = 'read committed' THEN NULL
        ELSE clock_timestamp() + $8::interval
    END,
    coalesce((SELECT last.place FROM last), 0) + 1,
    CASE WHEN $11 IS NOT NULL THEN clock_timestamp() END, $11,
    nullif($12::text, ''), $13::bytea, $14::text, $15::bytea, $16::bigint, $17::text, $18::text, $19::text,
    $20::text, $21::timestamptz,
    $22::bytea, $23::text[], $24::bytea[], $25::text,
    $26::text, $27::text, $28::int, $29::bigint, $30::text,
    $31::text, $32::text, $33::timestamptz, $34::boolean, $35::text
WHERE (
        $10::bigint = 0
        OR NOT EXISTS (SELECT FROM last)
        OR (SELECT last.place FROM last) - (SELECT first.place FROM first) + 1 < $10
    )
    AND (
        NOT $36::boolean
        OR EXISTS (
            SELECT
            FROM semel.processed_messages AS p
            WHERE p.consumer_id = $1
                AND p.message_id = $3
                AND p.xmin = pg_current_xact_id()::xid
        )
    )
ON CONFLICT (consumer_id, message_id) DO NOTHING
RETURNING ready_at IS NOT NULL
