-- A message of the inbox as its row holds it, whole.
-- Locks: nothing. Index: inbox_messages_pkey.
SELECT
    i.message_text, i.raw_id, i.message_type, i.key, i.message_version, i.correlation_id, i.causation_id, i.source,
    i.content_type, i.occurred_at,
    i.payload, i.header_names, i.header_values, i.header_tags,
    i.origin_transport, i.origin_topic, i.origin_partition, i.origin_offset, i.origin_position,
    i.origin_exchange, i.origin_routing_key, i.origin_time, i.origin_redelivered, i.altered
FROM semel.inbox_messages AS i
WHERE i.consumer_id = $1
    AND i.message_id = $2
