-- The engine's claim, with the transaction's settings folded in so that they cost no round trip.
-- One row: claimed, and the session's own lock_timeout is back. No row: settled before; the claim's
-- lock_timeout stays until the ROLLBACK that follows. 55P03: in flight elsewhere.
-- idle_in_transaction_session_timeout stays: the server frees the claim of a frozen process.
-- Locks: the key of the new row, until the transaction ends. Index: processed_messages_pkey.
WITH old AS MATERIALIZED (
    SELECT current_setting('lock_timeout') AS lock_timeout
)
INSERT INTO semel.processed_messages (consumer_id, message_id, fingerprint, message_text, outcome)
SELECT $1::integer, $2::uuid, $3::bigint, $4::text, $5::smallint
FROM old
WHERE set_config('lock_timeout', $6, true) IS NOT NULL
  AND set_config('idle_in_transaction_session_timeout', $7, true) IS NOT NULL
ON CONFLICT (consumer_id, message_id) DO NOTHING
RETURNING set_config('lock_timeout', (SELECT lock_timeout FROM old), true)
