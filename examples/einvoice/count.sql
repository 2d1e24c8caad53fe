-- What became of the orders, told by the tables and by the providers' ledger files.
-- $1: the ids of all orders of the input. $2: of those whose payment fails.
--
-- An order has one invoice at a provider. If its payment fails it is cancelled, and has
-- a credit note there too. A document that is in front of a person, dead or behind
-- one that is, is neither missing nor lost.
--
-- missing: orders without an invoice.
-- lost:    orders that are not in the tables as they must be: not confirmed, not charged,
--          not cancelled though the payment failed; a document that was not requested, a
--          credit note that no provider has, one that a provider has and of which the
--          adapter does not know, or knows something else.
-- doubled: documents beyond one for each request of each order, at the providers and in
--          the requests; payments beyond one for each order.
WITH input AS (
    SELECT id, id = ANY ($2::text[]) AS fails
    FROM unnest($1::text[]) AS id
), document AS (
    SELECT id, 'INV-' || id AS number, false AS note FROM input
    UNION ALL
    SELECT id, 'CN-' || id, true FROM input WHERE fails
), effect AS (
    SELECT number, count(*) AS times, array_agg(e.id) AS provider_ids
    FROM provider_effects AS e
    GROUP BY number
), request AS (
    SELECT number, count(*) AS times, min(provider_id) AS provider_id
    FROM invoice_requests
    GROUP BY number
), payment AS (
    SELECT order_id, count(*) AS times, min(status) AS status
    FROM payments
    GROUP BY order_id
), person AS ( -- what one looks at
    SELECT message_text AS number FROM semel.dead_letters
    UNION
    SELECT message_text FROM semel.inbox_messages WHERE ready_at IS NULL -- parked, or behind one that is
), state AS (
    SELECT d.id, d.note,
           effect.number IS NULL AS absent,
           person.number IS NOT NULL AS person,
           coalesce(request.provider_id = ANY (effect.provider_ids), false) AS known
    FROM document AS d
    LEFT JOIN effect USING (number)
    LEFT JOIN request USING (number)
    LEFT JOIN person USING (number)
), wrong AS (
    SELECT id FROM state WHERE NOT person AND CASE WHEN absent THEN note ELSE NOT known END
    UNION
    SELECT i.id
    FROM input AS i
    LEFT JOIN orders AS o ON o.id = i.id
    LEFT JOIN payment AS p ON p.order_id = i.id
    WHERE o.status IS DISTINCT FROM CASE WHEN i.fails THEN 'CANCELLED' ELSE 'CONFIRMED' END
       OR p.status IS DISTINCT FROM CASE WHEN i.fails THEN 'FAILED' ELSE 'PAID' END
)
SELECT (SELECT count(*) FROM input)                                                    AS orders,
       (SELECT count(*) FROM state WHERE NOT note AND NOT absent)                      AS invoices,
       (SELECT count(*) FROM state WHERE note AND NOT absent)                          AS notes,
       (SELECT count(*) FROM state WHERE NOT note AND absent AND NOT person)           AS missing,
       (SELECT count(*) FROM wrong)                                                    AS lost,
       (SELECT coalesce(sum(times), 0) - count(*) FILTER (WHERE number IN (SELECT number FROM document)) FROM effect)::bigint
       + (SELECT coalesce(sum(times), 0) - count(*) FROM request)::bigint
       + (SELECT coalesce(sum(times), 0) - count(*) FROM payment)::bigint              AS doubled,
       (SELECT count(*) FROM semel.dead_letters WHERE state <> 'resolved')             AS dead,
       (SELECT count(*) FROM semel.calls WHERE attempts > 1)                           AS repeated
