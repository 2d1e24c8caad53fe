-- Makes a message that a person decided against one that waits in the inbox.
-- No row: it has another outcome.
-- Locks: the row, until the transaction ends. Index: processed_messages_pkey.
INSERT INTO semel.processed_messages AS p (consumer_id, message_id, fingerprint, message_text, outcome)
VALUES ($1, $2, $3, $4, 4) -- stored
ON CONFLICT (consumer_id, message_id) DO UPDATE
SET outcome = excluded.outcome,
    processed_at = clock_timestamp()
WHERE p.outcome = 3 -- skipped
