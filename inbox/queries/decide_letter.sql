-- Notes what a person decided about a dead letter, and who. No row: it is settled,
-- or another decision was faster.
-- Locks the row. Index: dead_letters_pkey.
UPDATE semel.dead_letters
SET state = $2::text,
    decided_by = nullif($3, ''),
    resolved_at = CASE WHEN $2::text = 'discarded' THEN clock_timestamp() END
WHERE id = $1
    AND state = ANY ($4::text[])
    AND (redacted_at IS NULL OR $2 = 'discarded')
