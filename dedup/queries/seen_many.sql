-- How messages ended that could not be claimed, and what they looked like.
-- A statement of its own behind the claims: its snapshot must follow their wait.
-- Locks: nothing. Index: processed_messages_pkey.
SELECT message_id, outcome, fingerprint
FROM semel.processed_messages
WHERE consumer_id = $1
  AND message_id = ANY ($2::uuid[])
