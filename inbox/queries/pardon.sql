-- Gives failed attempts back to a message of the inbox: what they met was away. No
-- row: it is not the worker's any more.
-- Locks: the row. Index: inbox_messages_pkey.
UPDATE semel.inbox_messages
SET attempts = $4,
    first_failed_at = CASE WHEN $4 > 0 THEN first_failed_at END,
    last_failed_at = CASE WHEN $4 > 0 THEN last_failed_at END
WHERE consumer_id = $1
    AND message_id = $2
    AND lease_owner = $3
