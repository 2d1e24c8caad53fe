-- Takes a call in hand: the row of consumer $1, message $2 and step $3 gets owner $5
-- for $6. A new row is the intent too, under key $8: its call has ended for certain
-- after $7. $7 is NULL if the provider is asked before anything is sent.
-- Always one row: how the message ended (NULL: it has not), and the call as it stands
-- now. taken says whether it is ours: not if it is done, if somebody has it in hand,
-- or if the message is settled. All NULL: somebody took it at this moment. Epoch 1 is
-- that of a new row alone, whatever somebody has written into an older one; at the end
-- of the numbers the owner tells one from the other.
-- Locks: the row, for as long as the statement runs.
-- Index: calls_pkey, processed_messages_pkey.
WITH seen AS MATERIALIZED (
    SELECT p.outcome
    FROM semel.processed_messages AS p
    WHERE p.consumer_id = $1::int
      AND p.message_id = $2::uuid
), taken AS (
    INSERT INTO semel.calls AS c (
        consumer_id, message_id, step, message_text, lease_owner, lease_until,
        deadline, sent_first_at, attempts, state, idempotency_key
    )
    SELECT
        $1::int, $2::uuid, $3::text, $4::text, $5::uuid, clock_timestamp() + $6::interval,
        clock_timestamp() + $7::interval,
        CASE WHEN $7::interval IS NOT NULL THEN clock_timestamp() END,
        CASE WHEN $7::interval IS NOT NULL THEN 1 ELSE 0 END,
        CASE WHEN $7::interval IS NOT NULL THEN 1 ELSE 5 END, -- started, ready
        $8::text
    WHERE NOT EXISTS (
        SELECT
        FROM seen AS s
        WHERE s.outcome NOT IN (4, 5) -- stored, dead
    )
    ON CONFLICT (consumer_id, message_id, step) DO UPDATE
    SET lease_owner = excluded.lease_owner,
        lease_until = excluded.lease_until,
        epoch = least(greatest(c.epoch, 1), 9223372036854775806) + 1
    WHERE c.state <> 2 -- done
      AND (c.lease_until IS NULL OR c.lease_until <= clock_timestamp())
    RETURNING c.state, c.generation, c.epoch, c.attempts, c.idempotency_key, c.sent_first_at, c.deadline
)
SELECT
    (SELECT s.outcome FROM seen AS s), clock_timestamp(),
    t.taken, t.state, t.generation, t.epoch, t.attempts, t.idempotency_key, t.sent_first_at, t.deadline,
    t.result, t.result_codec, t.error
FROM (VALUES (1)) AS one (n)
LEFT JOIN (
    SELECT
        true AS taken, k.state, k.generation, k.epoch, k.attempts, k.idempotency_key, k.sent_first_at, k.deadline,
        NULL::bytea AS result, NULL::text AS result_codec, NULL::text AS error
    FROM taken AS k
    UNION ALL
    SELECT
        false, c.state, c.generation, c.epoch, c.attempts, c.idempotency_key, c.sent_first_at, c.deadline,
        c.result, c.result_codec, c.error
    FROM semel.calls AS c
    WHERE c.consumer_id = $1::int
      AND c.message_id = $2::uuid
      AND c.step = $3::text
      AND NOT EXISTS (SELECT FROM taken)
) AS t ON true
