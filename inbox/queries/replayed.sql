-- What has become of replays, of the letters $1 whose messages are claimed again under
-- $2: how many are being handled still, were handled, died again, ended as superseded,
-- and as skipped. What is not remembered any more was handled.
-- Locks: nothing. Index: dead_letters_pkey, processed_messages_pkey.
SELECT
    count(*) FILTER (WHERE d.state = 'replaying'),
    count(*) FILTER (WHERE d.state = 'resolved' AND coalesce(p.outcome, 1) NOT IN (2, 3)),
    count(*) FILTER (WHERE d.state = 'open'),
    count(*) FILTER (WHERE d.state = 'resolved' AND p.outcome = 2),
    count(*) FILTER (WHERE d.state = 'resolved' AND p.outcome = 3)
FROM unnest($1::bigint[], $2::uuid[]) AS r (letter_id, message_id)
JOIN semel.dead_letters AS d ON d.id = r.letter_id
LEFT JOIN semel.processed_messages AS p ON p.consumer_id = d.consumer_id AND p.message_id = r.message_id
