-- What became of the approvals, told by the tables and by what was on the topic.
-- $1: the merchants whose reviewers were told that they are approved.
--
-- A merchant is approved once in the merchants table, with one event on the
-- topic (copies of it are none), one configuration and one entry in the index.
--
-- lost:    approved merchants for whom one of the three is missing, and those
--          whose approval was told and is not in the table.
-- doubled: events, configurations and entries beyond one for each approved
--          merchant, and all of those for a merchant that is not approved.
WITH approval AS (
    SELECT id AS merchant_id, 1 AS approvals
    FROM merchants
    WHERE status = 'approved'
), event AS (
    SELECT merchant_id, count(DISTINCT message) AS events
    FROM topic_records
    GROUP BY merchant_id
), configuration AS (
    SELECT merchant_id, count(*) AS configs
    FROM configurations
    GROUP BY merchant_id
), entry AS (
    SELECT merchant_id, count(*) AS entries
    FROM search_index
    GROUP BY merchant_id
), merchant AS (
    SELECT coalesce(approvals, 0) AS approvals,
           coalesce(events, 0)    AS events,
           coalesce(configs, 0)   AS configs,
           coalesce(entries, 0)   AS entries,
           merchant_id
    FROM approval
    FULL JOIN event USING (merchant_id)
    FULL JOIN configuration USING (merchant_id)
    FULL JOIN entry USING (merchant_id)
), told AS (
    SELECT unnest($1::text[]) AS merchant_id
)
SELECT coalesce(sum(approvals), 0)::bigint                                                   AS approvals,
       coalesce(sum(events), 0)::bigint                                                      AS published,
       coalesce(sum(configs), 0)::bigint                                                     AS configs,
       coalesce(sum(entries), 0)::bigint                                                     AS indexed,
       (count(*) FILTER (WHERE approvals = 1 AND least(events, configs, entries) = 0)
        + (SELECT count(*) FROM told WHERE merchant_id NOT IN (SELECT merchant_id FROM approval)))::bigint AS lost,
       coalesce(sum(greatest(events - approvals, 0)
                    + greatest(configs - approvals, 0)
                    + greatest(entries - approvals, 0)), 0)::bigint                          AS doubled,
       (SELECT count(*) FROM topic_records)                                                  AS records,
       (SELECT coalesce(sum(calls), 0)::bigint FROM idempotency_keys)                        AS calls,
       (SELECT coalesce(sum(attempts), 0)::bigint FROM semel.outbox)                         AS attempts,
       (SELECT count(*) FROM semel.dead_letters)                                             AS dead
FROM merchant
