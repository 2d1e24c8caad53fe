-- How long until something is ready. NULL: nothing waits for a time. What is ready
-- always or never is by hand, and has no difference.
-- Locks: nothing. Index: inbox_messages_consumer_id_ready_at_idx.
SELECT min(i.ready_at) - clock_timestamp()
FROM semel.inbox_messages AS i
WHERE i.consumer_id = $1
    AND i.ready_at > '-infinity'
    AND i.ready_at < 'infinity'
