// Package msgrow keeps messages in columns: dead letters and the inbox hold
// what came byte for byte, whatever PostgreSQL's text can hold of it.
//
// A table that keeps messages has these columns, in this order, in the
// statements that write and read them:
//
//	message_text, raw_id, message_type, key, message_version,
//	correlation_id, causation_id, source, content_type, occurred_at,
//	payload, header_names, header_values, header_tags,
//	origin_transport, origin_topic, origin_partition, origin_offset, origin_position,
//	origin_exchange, origin_routing_key, origin_time, origin_redelivered, altered
package msgrow
