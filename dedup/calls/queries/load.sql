-- One call with its result; the columns of list.sql.
-- Locks: nothing. Index: calls_pkey.
SELECT
    c.consumer_id, c.message_id, c.step, coalesce(n.name, ''), coalesce(c.message_text, c.message_id::text),
    c.state, c.generation, c.attempts, c.idempotency_key, c.created_at, c.updated_at,
    c.sent_first_at, c.deadline, c.lease_until,
    coalesce(greatest(c.lease_until, c.deadline) > clock_timestamp(), false) AND c.state <> 2, -- done
    c.error, c.resolved_by, d.id, d.state,
    c.result, c.result_codec
FROM semel.calls AS c
LEFT JOIN semel.consumers AS n ON n.id = c.consumer_id
LEFT JOIN semel.dead_letters AS d
    ON d.consumer_id = c.consumer_id
    AND d.message_id = c.message_id
    AND d.reason <> 'mismatch'
WHERE c.consumer_id = $1
  AND c.message_id = $2
  AND c.step = $3
