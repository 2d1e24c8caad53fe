-- Gives a call back that owner $4 has in hand under epoch $5: how it stands, since when
-- the provider knows its key, when its last attempt has ended for certain, and what
-- that said. No row: somebody else has it in hand, or a person has decided.
-- Locks: the row. Index: calls_pkey.
UPDATE semel.calls AS c
SET state = $6::smallint,
    sent_first_at = $7::timestamptz,
    deadline = $8::timestamptz,
    error = coalesce($9::text, c.error),
    lease_owner = NULL,
    lease_until = NULL,
    updated_at = clock_timestamp()
WHERE c.consumer_id = $1::int
  AND c.message_id = $2::uuid
  AND c.step = $3::text
  AND c.lease_owner = $4::uuid
  AND c.epoch = $5::bigint
