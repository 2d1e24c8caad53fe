-- The claim of one who holds a message that is stored or dead (a replay): takes the row over and sets
-- its outcome and time anew. No row: settled elsewhere.
-- Settings as in claim_timed.sql.
-- Locks: the row, until the transaction ends; a second claimant waits, then sees the new outcome.
-- Index: processed_messages_pkey.
WITH old AS MATERIALIZED (
    SELECT current_setting('lock_timeout') AS lock_timeout
)
INSERT INTO semel.processed_messages AS p (consumer_id, message_id, fingerprint, message_text, outcome)
SELECT $1::integer, $2::uuid, $3::bigint, $4::text, $5::smallint
FROM old
WHERE set_config('lock_timeout', $6, true) IS NOT NULL
  AND set_config('idle_in_transaction_session_timeout', $7, true) IS NOT NULL
ON CONFLICT (consumer_id, message_id) DO UPDATE
SET outcome = excluded.outcome,
    processed_at = clock_timestamp()
WHERE p.outcome IN (4, 5) -- stored, dead
RETURNING set_config('lock_timeout', (SELECT lock_timeout FROM old), true)
