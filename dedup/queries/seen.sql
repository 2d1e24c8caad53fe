-- How a message that could not be claimed ended, and what it looked like.
-- A statement of its own behind the claim: its snapshot must follow the claim's wait.
-- Locks: nothing. Index: processed_messages_pkey.
SELECT outcome, fingerprint
FROM semel.processed_messages
WHERE consumer_id = $1
  AND message_id = $2
