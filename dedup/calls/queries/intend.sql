-- The intent of a call whose row owner $4 has in hand under epoch $5: it is made (again)
-- in generation $6 under key $7, the lease runs for $8, and after $9 it has ended for
-- certain. The provider remembers a key from the first time on. No row: somebody else
-- has it in hand, or could have: what was decided when it was taken is too old.
-- Locks: the row. Index: calls_pkey.
UPDATE semel.calls AS c
SET state = 1, -- started
    generation = $6::int,
    idempotency_key = $7::text,
    attempts = least(c.attempts, 2147483646) + 1,
    lease_until = clock_timestamp() + $8::interval,
    deadline = greatest(c.deadline, clock_timestamp() + $9::interval),
    sent_first_at = CASE WHEN c.generation = $6::int THEN coalesce(c.sent_first_at, clock_timestamp()) ELSE clock_timestamp() END,
    error = NULL,
    updated_at = clock_timestamp()
WHERE c.consumer_id = $1::int
  AND c.message_id = $2::uuid
  AND c.step = $3::text
  AND c.lease_owner = $4::uuid
  AND c.epoch = $5::bigint
  AND c.lease_until > clock_timestamp()
RETURNING c.attempts, c.sent_first_at, c.deadline
