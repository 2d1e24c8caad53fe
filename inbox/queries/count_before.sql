-- How many messages of a key come before seq $3; at most $4 are counted.
-- Locks: nothing. Index: inbox_messages_consumer_id_key_hash_seq_idx.
SELECT count(*)
FROM (
    SELECT
    FROM semel.inbox_messages AS i
    WHERE i.consumer_id = $1
        AND i.key_hash = $2
        AND i.seq < $3
    LIMIT $4
) AS before
