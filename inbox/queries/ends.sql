-- Where the messages of these keys end that wait, and where they begin. A place that
-- is none was set by hand: see store.sql.
-- The caller holds the keys' locks. Locks: nothing.
-- Index: inbox_messages_consumer_id_key_hash_seq_idx.
SELECT k.key_hash, l.place, f.place
FROM unnest($2::bigint[]) AS k (key_hash)
CROSS JOIN LATERAL (
    SELECT CASE WHEN i.place BETWEEN 1 AND 4611686018427387903 THEN i.place ELSE 0 END AS place
    FROM semel.inbox_messages AS i
    WHERE i.consumer_id = $1
        AND i.key_hash = k.key_hash
    ORDER BY i.seq DESC
    LIMIT 1
) AS l
CROSS JOIN LATERAL (
    SELECT greatest(least(coalesce(i.place, 0), 4611686018427387903), 0) AS place
    FROM semel.inbox_messages AS i
    WHERE i.consumer_id = $1
        AND i.key_hash = k.key_hash
    ORDER BY i.seq
    LIMIT 1
) AS f
