-- What became of the messages of consumer $1, told by the tables alone.
--
-- handled: recorded as processed, with an effect, and where that is a payment with an
--          event of which everybody has learned. A record without one of these is in
--          no column and so comes out as lost.
-- doubled: effects beyond one per handled message, each account or order that is off
--          by more than the rows missing or in excess explain, events beyond one
--          per message, and shipments and invoices beyond one per event.
WITH recorded AS (
    SELECT message, outcome
    FROM semel.processed
    WHERE consumer = $1
), effect AS (
    SELECT message, count(*) AS times, bool_or(type = 'payment_intent.succeeded') AS paid
    FROM effects
    GROUP BY message
), shipped AS (
    SELECT event, count(*) AS times
    FROM shipments
    GROUP BY event
), invoiced AS (
    SELECT event, count(*) AS times
    FROM invoices
    GROUP BY event
), told AS (
    SELECT o.causation_id AS message, count(*) AS times, bool_and(shipped.times > 0 AND invoiced.times > 0) AS learned
    FROM semel.outbox AS o
    LEFT JOIN shipped ON shipped.event = o.id::text
    LEFT JOIN invoiced ON invoiced.event = o.id::text
    GROUP BY o.causation_id
), handled AS (
    SELECT count(*) FILTER (WHERE effect.message IS NOT NULL AND (NOT effect.paid OR told.learned)) AS messages,
           count(*) FILTER (WHERE effect.message IS NOT NULL)                                       AS with_effect,
           count(*) FILTER (WHERE effect.message IS NULL)                                           AS missing
    FROM recorded
    LEFT JOIN effect USING (message)
    LEFT JOIN told USING (message)
    WHERE outcome = 'processed'
), excess AS (
    SELECT coalesce(sum(times), 0) - (SELECT with_effect FROM handled) AS effects
    FROM effect
), again AS (
    SELECT coalesce(sum(times - 1), 0) AS times
    FROM (SELECT times FROM told UNION ALL SELECT times FROM shipped UNION ALL SELECT times FROM invoiced) AS all_of_them
), off AS (
    SELECT count(*) AS accounts
    FROM accounts AS a
    FULL JOIN (SELECT account AS id, sum(amount) AS amount FROM effects WHERE account IS NOT NULL GROUP BY account) AS e USING (id)
    WHERE a.balance IS DISTINCT FROM e.amount
), wrong AS (
    SELECT count(*) AS orders
    FROM orders AS o
    FULL JOIN (SELECT order_id AS id, sum(amount) AS amount FROM effects WHERE order_id IS NOT NULL GROUP BY order_id) AS e USING (id)
    WHERE o.paid - o.refunded IS DISTINCT FROM e.amount
)
SELECT handled.messages                                                         AS handled,
       (SELECT count(*) FROM recorded WHERE outcome = 'superseded')             AS superseded,
       (SELECT count(*) FROM semel.dead WHERE consumer = $1)                    AS dead,
       (excess.effects + again.times
        + greatest(off.accounts - excess.effects - handled.missing, 0)
        + greatest(wrong.orders - excess.effects - handled.missing, 0))::bigint AS doubled,
       (SELECT count(*) FROM shipments)                                         AS shipped,
       (SELECT count(*) FROM invoices)                                          AS invoiced,
       (SELECT count(*) FROM recorded WHERE message = $2)                       AS forged
FROM handled, excess, again, off, wrong
