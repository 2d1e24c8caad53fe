-- Puts a message back in its place that was taken before its turn. It is ready
-- again when what is before it is gone.
-- The caller holds the key's lock. Locks: the row.
-- Index: inbox_messages_pkey, inbox_messages_consumer_id_key_hash_seq_idx.
UPDATE semel.inbox_messages AS i
SET lease_owner = NULL,
    ready_at = CASE
        WHEN EXISTS (
            SELECT
            FROM semel.inbox_messages AS b
            WHERE b.consumer_id = i.consumer_id
                AND b.key_hash = i.key_hash
                AND b.seq < i.seq
        ) THEN NULL
        ELSE clock_timestamp()
    END
WHERE i.consumer_id = $1
    AND i.message_id = $2
    AND i.lease_owner = $3
