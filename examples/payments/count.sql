-- What became of the messages of consumer $1, told by the tables alone.
--
-- handled: recorded as processed, with an effect. A record without one is in no
--          column and so comes out as lost.
-- doubled: effects beyond one per handled message, and each account or order
--          that is off by more than the rows missing or in excess explain.
WITH recorded AS (
    SELECT message, outcome
    FROM semel.processed
    WHERE consumer = $1
), effect AS (
    SELECT message, count(*) AS times
    FROM effects
    GROUP BY message
), handled AS (
    SELECT count(*) FILTER (WHERE effect.message IS NOT NULL) AS messages,
           count(*) FILTER (WHERE effect.message IS NULL)     AS missing
    FROM recorded
    LEFT JOIN effect USING (message)
    WHERE outcome = 'processed'
), excess AS (
    SELECT coalesce(sum(times), 0) - (SELECT messages FROM handled) AS effects
    FROM effect
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
       (excess.effects
        + greatest(off.accounts - excess.effects - handled.missing, 0)
        + greatest(wrong.orders - excess.effects - handled.missing, 0))::bigint AS doubled
FROM handled, excess, off, wrong
