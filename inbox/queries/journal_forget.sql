-- Forgets a message that has its outcome, or waits for its next attempt.
-- Locks: the row. Index: attempt_journal_pkey.
DELETE FROM semel.attempt_journal
WHERE consumer_id = $1
    AND message_id = $2
