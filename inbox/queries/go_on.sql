-- Makes the next message of a key ready, unless it is parked. The one before it
-- was taken out by a statement before this one.
-- The caller holds the key's lock. Locks: the row.
-- Index: inbox_messages_consumer_id_key_hash_seq_idx, inbox_messages_pkey.
UPDATE semel.inbox_messages AS i
SET ready_at = clock_timestamp()
WHERE i.consumer_id = $1
    AND i.message_id = (
        SELECT n.message_id
        FROM semel.inbox_messages AS n
        WHERE n.consumer_id = $1
            AND n.key_hash = $2
        ORDER BY n.seq
        LIMIT 1
    )
    AND i.ready_at IS NULL
    AND i.parked_at IS NULL
