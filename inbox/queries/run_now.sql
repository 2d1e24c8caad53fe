-- Makes a message ready that waits for a time. No row: it does not, or not alone: a
-- worker has it, it waits behind others of its key, or for a person.
-- Locks: the row. Index: inbox_messages_pkey.
UPDATE semel.inbox_messages
SET ready_at = clock_timestamp()
WHERE consumer_id = $1
    AND message_id = $2
    AND ready_at > clock_timestamp()
    AND lease_owner IS NULL
    AND parked_at IS NULL
RETURNING seq
