-- Puts a message off whose attempt failed, or that nobody here can handle. No row:
-- it is not the worker's any more.
-- Locks: the row. Index: inbox_messages_pkey.
UPDATE semel.inbox_messages
SET ready_at = clock_timestamp() + $4::interval,
    lease_owner = NULL,
    attempts = $5,
    first_failed_at = clock_timestamp() - $6::interval,
    last_failed_at = CASE WHEN $5 > attempts THEN clock_timestamp() ELSE last_failed_at END,
    errors = $7
WHERE consumer_id = $1
    AND message_id = $2
    AND lease_owner = $3
