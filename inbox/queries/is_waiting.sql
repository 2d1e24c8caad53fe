-- Whether a message is in the inbox.
-- Locks: nothing. Index: inbox_messages_pkey.
SELECT EXISTS (
    SELECT
    FROM semel.inbox_messages AS i
    WHERE i.consumer_id = $1
        AND i.message_id = $2
)
