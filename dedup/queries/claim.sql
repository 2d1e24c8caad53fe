-- The primitive: claims a message for the calling transaction. One row: go ahead. No row: a duplicate.
-- While another transaction holds the same key this statement waits for it, so a rolled-back
-- attempt frees the key at once and needs no lease or sweeper.
-- Locks: the key of the new row, until the transaction ends. Index: processed_messages_pkey.
INSERT INTO semel.processed_messages (consumer_id, message_id, message_text, outcome)
VALUES ($1, $2, $3, 1)
ON CONFLICT (consumer_id, message_id) DO NOTHING
