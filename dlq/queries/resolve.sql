-- Notes that a dead message was handled after all. No row: it was settled elsewhere.
-- Locks the row. Index: dead_letters_pkey.
UPDATE semel.dead_letters
SET state = 'resolved',
    resolved_at = clock_timestamp()
WHERE id = $1
    AND state IN ('open', 'replaying');
