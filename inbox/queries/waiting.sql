-- The consumers that a message waits for in the inbox. Goes from one to the next.
-- Locks: nothing. Index: inbox_messages_pkey.
WITH RECURSIVE present AS (
    (
        SELECT i.consumer_id
        FROM semel.inbox_messages AS i
        ORDER BY i.consumer_id
        LIMIT 1
    )
    UNION ALL
    SELECT n.consumer_id
    FROM present AS p
    CROSS JOIN LATERAL (
        SELECT i.consumer_id
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id > p.consumer_id
        ORDER BY i.consumer_id
        LIMIT 1
    ) AS n
)
SELECT p.consumer_id, coalesce(c.name, '')
FROM present AS p
LEFT JOIN semel.consumers AS c ON c.id = p.consumer_id
ORDER BY c.name NULLS LAST, p.consumer_id
