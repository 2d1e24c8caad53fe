-- Makes a message ready that waits for a time, or that somebody has stopped by hand: it
-- is the first of its key and has no time. No row: it does not wait for that: a worker has it, it waits behind others of its key,
-- or for a person.
-- Locks: the row. Index: inbox_messages_pkey, inbox_messages_consumer_id_key_hash_seq_idx.
UPDATE semel.inbox_messages AS i
SET ready_at = clock_timestamp()
WHERE i.consumer_id = $1
    AND i.message_id = $2
    AND (
        i.ready_at > clock_timestamp() AND i.lease_owner IS NULL
        OR i.ready_at IS NULL AND NOT EXISTS (
            SELECT
            FROM semel.inbox_messages AS b
            WHERE b.consumer_id = i.consumer_id
                AND b.key_hash = i.key_hash
                AND b.seq < i.seq
        )
    )
    AND i.parked_at IS NULL
RETURNING i.seq
