-- Notes that a replay failed: the letter is open again, with the new errors. No
-- row: it was settled elsewhere. A mismatch stays one, since its reason decides
-- which rows it must be unique among.
-- Locks the row. Index: dead_letters_pkey.
UPDATE semel.dead_letters
SET state = 'open',
    reason = CASE WHEN reason = 'mismatch' THEN reason ELSE $2 END,
    attempts = least(attempts::bigint + $3::int, 2147483647),
    errors = $4,
    altered = CASE WHEN strpos(altered, $5) > 0 THEN altered ELSE nullif(concat_ws(', ', altered, $5), '') END,
    last_failed_at = clock_timestamp()
WHERE id = $1
    AND state IN ('open', 'replaying');
