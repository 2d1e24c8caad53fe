-- Takes a message out of the inbox, in the transaction that settles it. With $3
-- only if it is still this worker's.
-- Locks: the row. Index: inbox_messages_pkey.
DELETE FROM semel.inbox_messages
WHERE consumer_id = $1
    AND message_id = $2
    AND ($3::uuid IS NULL OR lease_owner = $3)
