-- Calls for people, newest first; an empty filter matches all. Results stay behind.
-- under_way: somebody has it in hand, or its last attempt may not have ended yet. $3
-- leaves those of which nobody knows the end and that nobody has in hand. No process
-- can take one for 300 years: somebody has parked it by hand, and it needs a person.
-- Locks: nothing. Index: calls_open_idx for those of which nobody knows the end,
-- calls_pkey for those of one message, else it reads the table.
SELECT
    c.consumer_id, c.message_id, c.step, coalesce(n.name, ''), coalesce(c.message_text, c.message_id::text),
    c.state, c.generation, c.attempts, c.idempotency_key, c.created_at, c.updated_at,
    c.sent_first_at, c.deadline, c.lease_until,
    coalesce(greatest(c.lease_until, c.deadline) > clock_timestamp(), false) AND c.state <> 2, -- done
    c.error, c.resolved_by, d.id, d.state,
    NULL::bytea, c.result_codec
FROM semel.calls AS c
LEFT JOIN semel.consumers AS n ON n.id = c.consumer_id
LEFT JOIN semel.dead_letters AS d
    ON d.consumer_id = c.consumer_id
    AND d.message_id = c.message_id
    AND d.reason <> 'mismatch'
WHERE ($1::int IS NULL OR c.consumer_id = $1)
  AND ($2::smallint IS NULL OR c.state = $2)
  AND (NOT $3::bool OR c.state IN (1, 4) AND (c.lease_until IS NULL OR c.lease_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '300 years'))
  AND ($4::text = '' OR c.step = $4)
  AND ($5::uuid[] IS NULL OR c.message_id = ANY ($5))
ORDER BY c.created_at DESC, c.message_id, c.step
LIMIT $6
