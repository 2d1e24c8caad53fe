-- Makes the first message of each key ready that waits for nobody: what was before
-- it was deleted by hand, or by a consumer that kept no order. Walks from key to key.
-- Locks: the rows. Index: inbox_messages_consumer_id_key_hash_seq_idx.
WITH RECURSIVE heads AS (
    (
        SELECT i.key_hash, i.message_id, i.ready_at, i.parked_at
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id = $1
            AND i.key_hash IS NOT NULL
        ORDER BY i.key_hash, i.seq
        LIMIT 1
    )
    UNION ALL
    SELECT n.key_hash, n.message_id, n.ready_at, n.parked_at
    FROM heads AS h
    CROSS JOIN LATERAL (
        SELECT i.key_hash, i.message_id, i.ready_at, i.parked_at
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id = $1
            AND i.key_hash > h.key_hash
        ORDER BY i.key_hash, i.seq
        LIMIT 1
    ) AS n
)
UPDATE semel.inbox_messages AS i
SET ready_at = clock_timestamp()
FROM heads AS h
WHERE h.ready_at IS NULL
    AND h.parked_at IS NULL
    AND i.consumer_id = $1
    AND i.message_id = h.message_id
    AND i.ready_at IS NULL
    AND i.parked_at IS NULL
