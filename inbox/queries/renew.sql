-- Keeps messages for a worker. What is being handled is passed over: nobody else
-- can take it meanwhile.
-- Locks: the rows. Index: inbox_messages_pkey.
UPDATE semel.inbox_messages AS i
SET ready_at = clock_timestamp() + $4::interval
WHERE i.consumer_id = $1
    AND i.message_id = ANY (ARRAY(
        SELECT h.message_id
        FROM semel.inbox_messages AS h
        WHERE h.consumer_id = $1
            AND h.message_id = ANY ($2::uuid[])
            AND h.lease_owner = $3
        FOR UPDATE SKIP LOCKED
    ))
