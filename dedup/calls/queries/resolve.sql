-- What a person decided on a call of which nobody knows the end, or whose result was
-- not kept: state $4 and, of one that is done, the result. No row: it is not such a
-- one (any more), or it may be under way. What is so for 300 years somebody has
-- parked by hand: a person's decision ends that. An earlier owner's epoch is over. $7
-- is not NULL, also where nobody knows who it was.
-- Locks: the row. Index: calls_pkey.
UPDATE semel.calls AS c
SET state = $4::smallint,
    result = $5::bytea,
    result_codec = $6::text,
    error = CASE WHEN $4::smallint <> 2 THEN c.error END, -- of one that is done it says that there is no result
    resolved_by = $7::text,
    epoch = least(greatest(c.epoch, 1), 9223372036854775806) + 1,
    lease_owner = NULL,
    lease_until = NULL,
    deadline = CASE WHEN c.deadline <= clock_timestamp() + interval '300 years' THEN c.deadline END,
    updated_at = clock_timestamp()
WHERE c.consumer_id = $1
  AND c.message_id = $2
  AND c.step = $3
  AND (
      c.state IN (1, 4) -- started, unknown
      AND (c.lease_until IS NULL OR c.lease_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '300 years')
      AND (c.deadline IS NULL OR c.deadline NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '300 years')
      OR c.state = 2
      AND c.error IS NOT NULL
      AND $4::smallint = 2
  )
