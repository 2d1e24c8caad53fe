-- Makes what waits behind others of its key ready, at most $2 messages, for a
-- consumer that keeps no order any more: nobody would when those are gone. They are
-- due since they were stored, so the order of each key is that still.
-- Locks: the rows. Index: inbox_messages_consumer_id_key_hash_seq_idx.
UPDATE semel.inbox_messages AS i
SET ready_at = i.stored_at
WHERE i.consumer_id = $1
    AND i.message_id = ANY (ARRAY(
        SELECT b.message_id
        FROM semel.inbox_messages AS b
        WHERE b.consumer_id = $1
            AND b.key_hash IS NOT NULL
            AND b.ready_at IS NULL
            AND b.parked_at IS NULL
        ORDER BY b.key_hash, b.seq
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ))
