-- Whether consumer $1 has $2 messages or more in the inbox. A table that is too
-- small for so many is not counted.
-- Locks: nothing. Index: inbox_messages_pkey.
SELECT pg_relation_size(format('%I.inbox_messages', $3::text)::regclass) / 150 >= $2::bigint
    AND (
        SELECT count(*)
        FROM (
            SELECT
            FROM semel.inbox_messages AS i
            WHERE i.consumer_id = $1
            LIMIT $2
        ) AS present
    ) >= $2
