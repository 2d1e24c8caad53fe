-- Gives a message that this transaction has claimed the outcome that its handler
-- found. Locks: the row, which the claim holds. Index: processed_messages_pkey.
UPDATE semel.processed_messages AS p
SET outcome = $3
WHERE p.consumer_id = $1
  AND p.message_id = $2
