-- How many attempts of a message began and did not end.
-- Locks: nothing. Index: attempt_journal_pkey.
SELECT coalesce((
    SELECT attempts
    FROM semel.attempt_journal
    WHERE consumer_id = $1
        AND message_id = $2
), 0)
