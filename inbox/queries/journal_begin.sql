-- Notes that an attempt begins, before any of the user's code runs: what is not
-- taken back has killed its process. Committed at once, on its own.
-- Locks: the row. Index: attempt_journal_pkey.
INSERT INTO semel.attempt_journal AS j (consumer_id, message_id)
VALUES ($1, $2)
ON CONFLICT (consumer_id, message_id) DO UPDATE
SET attempts = j.attempts + 1,
    started_at = clock_timestamp()
RETURNING attempts
