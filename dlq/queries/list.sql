-- A page of dead letters, newest first, from id $5 (0: the newest) down; an empty
-- filter matches all. Payload and headers stay behind: a page of them could be
-- a gigabyte. Locks nothing.
-- Index: dead_letters_id_idx for open ones, else dead_letters_pkey.
SELECT
    d.id, coalesce(c.name, '') AS consumer, d.state, coalesce(d.owner, '') AS owner, coalesce(d.decided_by, '') AS decided_by,
    d.count, d.created_at, d.resolved_at, d.redacted_at,
    d.consumer_id, d.message_id, d.fingerprint, d.reason, d.attempts, d.first_failed_at,
    d.last_failed_at, d.errors, NULL::smallint AS outcome,
    d.message_text, d.raw_id, d.message_type, d.key, d.message_version, d.correlation_id,
    d.causation_id, d.source, d.content_type, d.occurred_at,
    NULL::bytea AS payload, NULL::text[] AS header_names, NULL::bytea[] AS header_values,
    NULL::text AS header_tags,
    d.origin_transport, d.origin_topic, d.origin_partition, d.origin_offset, d.origin_position,
    d.origin_exchange, d.origin_routing_key, d.origin_time, d.origin_redelivered, d.altered
FROM semel.dead_letters AS d
LEFT JOIN semel.consumers AS c ON c.id = d.consumer_id
WHERE ($1::text = '' OR d.consumer_id = semel.consumer_id($1))
    AND ($2::text = '' OR d.state = $2)
    AND ($3::text = '' OR d.reason = $3)
    AND ($4::text = '' OR d.message_type = $4)
    AND ($5::bigint = 0 OR d.id < $5)
    AND ($7::text = '' OR d.owner = $7)
    AND (NOT $8::bool OR coalesce(d.owner, '') = '')
ORDER BY d.id DESC
LIMIT $6;
