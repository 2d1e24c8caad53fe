-- A page of the inbox in the order stored, behind seq $5 and before seq $6; what is
-- NULL or '' matches all. Of a message that is parked or replayed the dead letter
-- holds the rest. Payload and headers stay behind: a page of them could be a
-- gigabyte. A row that somebody has changed by hand says what is wrong with it.
-- Locks: nothing. Index: inbox_messages_consumer_id_key_hash_seq_idx for a key ($4),
-- inbox_messages_pkey for a message ($8), inbox_messages_dead_letter_id_idx for what is
-- parked, inbox_messages_consumer_id_ready_at_idx for what is ready; else the whole table.
SELECT
    l.seq, l.consumer, l.consumer_id, l.message_id, l.state, l.fingerprint,
    l.stored_at, l.ready_at, l.parked_at, l.first_failed_at, l.last_failed_at,
    l.attempts, coalesce(l.dead_letter_id, 0), l.errors, l.damage,
    l.message_text, l.raw_id, l.message_type, l.key, l.message_version, l.correlation_id, l.causation_id, l.source,
    l.content_type, l.occurred_at,
    NULL::bytea AS payload, NULL::text[] AS header_names, NULL::bytea[] AS header_values, NULL::text AS header_tags,
    l.origin_transport, l.origin_topic, l.origin_partition, l.origin_offset, l.origin_position,
    l.origin_exchange, l.origin_routing_key, l.origin_time, l.origin_redelivered, l.altered
FROM (
    SELECT
        i.seq, coalesce(c.name, '') AS consumer, i.consumer_id, i.message_id, coalesce(i.fingerprint, d.fingerprint) AS fingerprint,
        CASE
            WHEN i.parked_at IS NOT NULL THEN 'parked'
            WHEN i.ready_at IS NULL THEN 'behind'
            WHEN i.ready_at <= statement_timestamp() THEN 'ready'
            WHEN i.lease_owner IS NOT NULL THEN 'taken'
            ELSE 'delayed'
        END AS state,
        i.stored_at, i.ready_at, i.parked_at, i.first_failed_at, i.last_failed_at, i.attempts, i.dead_letter_id,
        CASE
            WHEN i.parked_at IS NOT NULL THEN d.errors
            WHEN array_ndims(i.errors) = 1 THEN array_remove(i.errors, NULL)
        END AS errors,
        array_remove(ARRAY[
            CASE WHEN NOT isfinite(i.ready_at) THEN 'ready_at is ' || i.ready_at END,
            CASE WHEN i.ready_at IS NULL AND i.key_hash IS NULL AND i.parked_at IS NULL THEN 'it waits for no time, and behind no other' END,
            CASE WHEN i.attempts < 0 THEN 'attempts is ' || i.attempts END,
            CASE
                WHEN i.parked_at IS NOT NULL AND i.dead_letter_id IS NULL THEN 'it is parked without a dead letter'
                WHEN i.dead_letter_id IS NOT NULL AND d.id IS NULL THEN 'there is no dead letter ' || i.dead_letter_id
                WHEN d.consumer_id <> i.consumer_id THEN 'dead letter ' || d.id || ' is another consumer''s'
                WHEN i.parked_at IS NULL AND d.redacted_at IS NOT NULL THEN 'the payload of dead letter ' || d.id || ' was deleted'
                WHEN i.parked_at IS NOT NULL AND d.state IN ('resolved', 'discarded') THEN 'it is parked, but dead letter ' || d.id || ' is ' || d.state
            END,
            CASE
                WHEN array_ndims(i.header_names) > 1 OR array_ndims(i.header_values) > 1 THEN 'its headers are no lists'
                WHEN array_position(i.header_names, NULL) IS NOT NULL THEN 'a header has no name'
                WHEN coalesce(cardinality(i.header_names), 0) <> coalesce(cardinality(i.header_values), 0)
                    THEN 'it has ' || coalesce(cardinality(i.header_names), 0) || ' names and ' || coalesce(cardinality(i.header_values), 0) || ' values of headers'
            END
        ], NULL) AS damage,
        coalesce(i.message_text, d.message_text) AS message_text, coalesce(i.raw_id, d.raw_id) AS raw_id,
        coalesce(i.message_type, d.message_type) AS message_type, coalesce(i.key, d.key) AS key,
        coalesce(i.message_version, d.message_version) AS message_version,
        coalesce(i.correlation_id, d.correlation_id) AS correlation_id, coalesce(i.causation_id, d.causation_id) AS causation_id,
        coalesce(i.source, d.source) AS source, coalesce(i.content_type, d.content_type) AS content_type,
        coalesce(i.occurred_at, d.occurred_at) AS occurred_at,
        coalesce(i.origin_transport, d.origin_transport) AS origin_transport, coalesce(i.origin_topic, d.origin_topic) AS origin_topic,
        coalesce(i.origin_partition, d.origin_partition) AS origin_partition, coalesce(i.origin_offset, d.origin_offset) AS origin_offset,
        coalesce(i.origin_position, d.origin_position) AS origin_position, coalesce(i.origin_exchange, d.origin_exchange) AS origin_exchange,
        coalesce(i.origin_routing_key, d.origin_routing_key) AS origin_routing_key, coalesce(i.origin_time, d.origin_time) AS origin_time,
        coalesce(d.origin_redelivered, i.origin_redelivered) AS origin_redelivered, coalesce(i.altered, d.altered) AS altered
    FROM semel.inbox_messages AS i
    LEFT JOIN semel.consumers AS c ON c.id = i.consumer_id
    LEFT JOIN semel.dead_letters AS d ON d.id = i.dead_letter_id
    WHERE ($1::int IS NULL OR i.consumer_id = $1)
        AND ($2::text <> 'parked' OR i.dead_letter_id IS NOT NULL AND i.parked_at IS NOT NULL)
        AND ($2 <> 'ready' OR i.ready_at <= statement_timestamp())
        AND ($4::bigint IS NULL OR i.key_hash = $4)
        AND ($5::bigint = 0 OR i.seq > $5)
        AND ($6::bigint = 0 OR i.seq < $6)
        AND ($8::uuid IS NULL OR i.message_id = $8)
        AND ($9::bigint = 0 OR i.seq = $9)
) AS l
WHERE ($2 = '' OR l.state = $2)
    AND ($3::text = '' OR l.message_type = $3)
ORDER BY l.seq
LIMIT $7
