-- Takes a message out of the inbox that was settled elsewhere, if it stands in the
-- place that it had: one that was discarded and reopened meanwhile has another.
-- Locks: the row. Index: inbox_messages_pkey.
DELETE FROM semel.inbox_messages
WHERE consumer_id = $1
    AND message_id = $2
    AND seq = $3
