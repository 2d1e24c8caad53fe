-- Gives messages back that a worker took and did not handle. They are ready, and
-- not suspected of anything.
-- Locks: the rows. Index: inbox_messages_pkey.
UPDATE semel.inbox_messages
SET ready_at = clock_timestamp(),
    lease_owner = NULL
WHERE consumer_id = $1
    AND message_id = ANY ($2::uuid[])
    AND lease_owner = $3
