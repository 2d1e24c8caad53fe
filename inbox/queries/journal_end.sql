-- Takes back that an attempt began: it ended without taking its process along.
-- Those that did not end stay.
-- Locks: the row. Index: attempt_journal_pkey.
WITH others AS (
    UPDATE semel.attempt_journal
    SET attempts = attempts - 1
    WHERE consumer_id = $1
        AND message_id = $2
        AND attempts > 1
)
DELETE FROM semel.attempt_journal
WHERE consumer_id = $1
    AND message_id = $2
    AND attempts = 1
