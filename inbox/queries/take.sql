-- Takes what is ready, the longest waiting first: at most $4 messages, of at most
-- $5 bytes but for the first, for $2 until $3 has passed. One that somebody held
-- whose time is over died or froze with it: abandoned. Times that somebody made
-- infinite by hand must not keep the others from being taken.
-- Locks: the rows it takes, and passes over those that others hold.
-- Index: inbox_messages_consumer_id_ready_at_idx.
WITH due AS MATERIALIZED (
    SELECT i.message_id, i.ready_at, i.seq, i.lease_owner, coalesce(octet_length(i.payload), 0) AS size
    FROM semel.inbox_messages AS i
    WHERE i.consumer_id = $1
        AND i.ready_at <= now()
    ORDER BY i.ready_at
    LIMIT $4
    FOR UPDATE SKIP LOCKED
), summed AS (
    SELECT d.*, sum(d.size) OVER (ORDER BY d.ready_at, d.seq) AS upto
    FROM due AS d
), taken AS (
    UPDATE semel.inbox_messages AS i
    SET ready_at = clock_timestamp() + $3::interval,
        lease_owner = $2
    FROM summed AS s
    WHERE i.consumer_id = $1
        AND i.message_id = s.message_id
        AND (s.upto = s.size OR s.upto <= $5::bigint)
    RETURNING
        i.seq, i.message_id, i.key_hash, i.fingerprint, i.dead_letter_id, i.attempts,
        CASE WHEN isfinite(i.first_failed_at) THEN clock_timestamp() - i.first_failed_at END AS failing,
        CASE WHEN isfinite(i.stored_at) THEN clock_timestamp() - i.stored_at END AS age,
        s.lease_owner IS NOT NULL AS abandoned, s.ready_at AS was_ready_at,
        i.message_text, i.raw_id, i.message_type, i.key, i.message_version, i.correlation_id, i.causation_id, i.source,
        i.content_type, i.occurred_at,
        i.payload, i.header_names, i.header_values, i.header_tags,
        i.origin_transport, i.origin_topic, i.origin_partition, i.origin_offset, i.origin_position,
        i.origin_exchange, i.origin_routing_key, i.origin_time, i.origin_redelivered, i.altered
)
SELECT
    t.seq, t.message_id, t.key_hash, t.fingerprint, t.dead_letter_id, t.attempts, t.failing, t.age, t.abandoned,
    t.message_text, t.raw_id, t.message_type, t.key, t.message_version, t.correlation_id, t.causation_id, t.source,
    t.content_type, t.occurred_at,
    t.payload, t.header_names, t.header_values, t.header_tags,
    t.origin_transport, t.origin_topic, t.origin_partition, t.origin_offset, t.origin_position,
    t.origin_exchange, t.origin_routing_key, t.origin_time, t.origin_redelivered, t.altered
FROM taken AS t
ORDER BY t.was_ready_at, t.seq
