-- What became of the interchanges and their orders, told by the tables.
-- $1: how many different interchanges came in. $2: the orders in those of them that
-- are in order. $3: the intake.
--
-- Of each order there is one row, one event, and one thing done by each consumer.
--
-- lost:    interchanges that are neither accepted nor in front of a person, and orders
--          of which one of these is missing.
-- doubled: interchanges and orders beyond that, and all of an order nobody sent.
WITH expected AS (
    SELECT unnest($2::text[]) AS id, 1 AS wanted
), received AS (
    SELECT id, count(*) AS rows
    FROM orders
    GROUP BY id
), told AS (
    SELECT aggregateid AS id, count(*) AS events
    FROM semel.outbox
    WHERE type = 'OrderReceived'
    GROUP BY aggregateid
), erp AS (
    SELECT order_id AS id, count(*) AS erps
    FROM erp_orders
    GROUP BY order_id
), picked AS (
    SELECT order_id AS id, count(*) AS picks
    FROM pick_lists
    GROUP BY order_id
), notified AS (
    SELECT order_id AS id, count(*) AS notes
    FROM notifications
    GROUP BY order_id
), each AS (
    SELECT coalesce(wanted, 0) AS wanted,
           coalesce(rows, 0)   AS rows,
           coalesce(events, 0) AS events,
           coalesce(erps, 0)   AS erps,
           coalesce(picks, 0)  AS picks,
           coalesce(notes, 0)  AS notes
    FROM expected
    FULL JOIN received USING (id)
    FULL JOIN told USING (id)
    FULL JOIN erp USING (id)
    FULL JOIN picked USING (id)
    FULL JOIN notified USING (id)
), taken AS (
    SELECT (SELECT count(*) FROM interchanges)                       AS accepted,
           (SELECT count(*) FROM semel.dead WHERE consumer = $3)     AS refused
)
SELECT accepted,
       refused,
       (SELECT coalesce(sum(rows), 0)::bigint FROM each)  AS orders,
       (SELECT coalesce(sum(erps), 0)::bigint FROM each)  AS erp,
       (SELECT coalesce(sum(picks), 0)::bigint FROM each) AS warehouse,
       (SELECT coalesce(sum(notes), 0)::bigint FROM each) AS notified,
       greatest($1 - accepted - refused, 0)
           + (SELECT count(*) FILTER (WHERE wanted = 1 AND least(rows, events, erps, picks, notes) = 0) FROM each) AS lost,
       greatest(accepted + refused - $1, 0)
           + (SELECT coalesce(sum(greatest(rows - wanted, 0) + greatest(events - wanted, 0) + greatest(erps - wanted, 0)
                                  + greatest(picks - wanted, 0) + greatest(notes - wanted, 0)), 0)::bigint FROM each) AS doubled,
       (SELECT count(*) FROM semel.dead WHERE consumer <> $3) AS others
FROM taken
