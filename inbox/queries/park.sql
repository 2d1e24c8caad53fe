-- Keeps the place of a message that is dead now. What it held stands in the dead
-- letter. No row: it is not the worker's any more.
-- The caller holds the key's lock. Locks: the row. Index: inbox_messages_pkey.
UPDATE semel.inbox_messages
SET parked_at = clock_timestamp(),
    ready_at = NULL,
    lease_owner = NULL,
    dead_letter_id = $3::bigint,
    message_text = NULL, raw_id = NULL, message_type = NULL, message_version = NULL,
    correlation_id = NULL, causation_id = NULL, source = NULL, content_type = NULL, occurred_at = NULL,
    payload = NULL, header_names = NULL, header_values = NULL, header_tags = NULL,
    origin_transport = NULL, origin_topic = NULL, origin_partition = NULL, origin_offset = NULL,
    origin_position = NULL, origin_exchange = NULL, origin_routing_key = NULL, origin_time = NULL,
    altered = NULL
WHERE consumer_id = $1
    AND message_id = $2
    AND lease_owner = $4
