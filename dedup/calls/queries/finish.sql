-- Records that a call was done in generation $4. That is true whoever has it in hand
-- now, so an owner whose lease is over may say so too, also if the next one was told
-- no; but it changes nothing that is done already, that a person decided, or that
-- belongs to a later generation. Owner $8 that has it in hand under epoch $9 knows all
-- that, and may have asked before a generation began. No row: so it is.
-- Locks: the row. Index: calls_pkey.
UPDATE semel.calls AS c
SET state = 2, -- done
    result = $5::bytea,
    result_codec = $6::text,
    error = $7::text,
    lease_owner = NULL,
    lease_until = NULL,
    updated_at = clock_timestamp()
WHERE c.consumer_id = $1::int
  AND c.message_id = $2::uuid
  AND c.step = $3::text
  AND (
      c.lease_owner = $8::uuid
      AND c.epoch = $9::bigint
      OR c.generation = $4::int
      AND (
          c.state IN (1, 4, 5) -- started, unknown, ready
          OR c.state = 3
          AND c.resolved_by IS NULL
      )
  )
