-- What came of a call.
-- Locks: nothing. Index: calls_pkey.
SELECT c.state, c.result, c.result_codec, c.error
FROM semel.calls AS c
WHERE c.consumer_id = $1::int
  AND c.message_id = $2::uuid
  AND c.step = $3::text
