-- Says who looks after a dead letter; '' is nobody. Returns whether it was open or
-- replaying, so that it could be said, and whether there is such a letter at all.
-- Locks: its row. Index: dead_letters_pkey.
WITH assigned AS (
    UPDATE semel.dead_letters AS d
    SET owner = nullif($2, '')
    WHERE d.id = $1
        AND d.state IN ('open', 'replaying')
    RETURNING 1
)
SELECT
    EXISTS (SELECT FROM assigned),
    EXISTS (SELECT FROM semel.dead_letters AS d WHERE d.id = $1);
