-- Whether a message must wait: its key has one that was stored before $3.
-- A statement of its own behind the claim: its snapshot must follow the claim's wait.
-- Locks: nothing. Index: inbox_messages_consumer_id_key_hash_seq_idx.
SELECT
FROM semel.inbox_messages
WHERE consumer_id = $1
    AND key_hash = $2
    AND seq < $3
LIMIT 1
