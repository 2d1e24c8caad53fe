-- Takes a message out of the inbox, if it is what was taken from it: one that died in
-- other hands meanwhile has a dead letter, one that was reopened another place.
-- Locks: the row. Index: inbox_messages_pkey.
DELETE FROM semel.inbox_messages
WHERE consumer_id = $1
    AND message_id = $2
    AND seq = $3
    AND dead_letter_id IS NOT DISTINCT FROM nullif($4::bigint, 0)
