-- What became of what was booked, told by the tables and by what was on the topic.
-- $1: how many postings the writer was told are committed.
--
-- Each entry is a fact of its account, each change of an order one of the order, by
-- the number that the account or the order gave it. A fact has one event on the
-- topic. Copies of an event have its id: a consumer knows them by that, and they
-- are none here.
--
-- lost:      facts without an event, and what was told as committed and is not there.
-- doubled:   events beyond one for each fact, and those of what is no fact.
-- reordered: events whose first copy is on the topic behind that of a later one of
--            the same account or order.
-- off:       postings whose legs are not two of their amount that sum to zero, and
--            accounts whose balance or sequence is not what their entries make it.
WITH fact AS (
    SELECT kind, aggregate, version, count(*) AS times
    FROM (
        SELECT 'account' AS kind, account AS aggregate, sequence AS version
        FROM entries
        UNION ALL
        SELECT 'order', o.id, s.version
        FROM orders AS o
        CROSS JOIN LATERAL generate_series(1, o.sequence) AS s (version)
    ) AS f
    GROUP BY kind, aggregate, version
), event AS (
    SELECT kind, aggregate, version, message, min(place) AS place
    FROM topic_records
    GROUP BY kind, aggregate, version, message
), told AS (
    SELECT kind, aggregate, version, count(*) AS times
    FROM event
    GROUP BY kind, aggregate, version
), compared AS (
    SELECT coalesce(sum(greatest(coalesce(f.times, 0) - coalesce(t.times, 0), 0)), 0)::bigint AS lost,
           coalesce(sum(greatest(coalesce(t.times, 0) - coalesce(f.times, 0), 0)), 0)::bigint AS doubled
    FROM fact AS f
    FULL JOIN told AS t USING (kind, aggregate, version)
), behind AS (
    SELECT version < lag(version) OVER (PARTITION BY kind, aggregate ORDER BY place) AS earlier
    FROM event
), leg AS (
    SELECT posting, count(*) AS legs, sum(amount) AS sum, max(amount) AS amount
    FROM entries
    GROUP BY posting
), turnover AS (
    SELECT account, count(*) AS entries, sum(amount) AS amount
    FROM entries
    GROUP BY account
), booked AS (
    SELECT count(p.id) AS postings,
           count(*) FILTER (WHERE l.legs IS DISTINCT FROM 2 OR l.sum IS DISTINCT FROM 0 OR l.amount IS DISTINCT FROM p.amount) AS off
    FROM postings AS p
    FULL JOIN leg AS l ON l.posting = p.id
), balanced AS (
    SELECT count(*) FILTER (
        WHERE a.balance IS DISTINCT FROM a.opening + coalesce(t.amount, 0)
           OR a.sequence IS DISTINCT FROM coalesce(t.entries, 0)
    ) AS off
    FROM accounts AS a
    FULL JOIN turnover AS t ON t.account = a.id
), sent AS (
    SELECT count(*) AS written,
           count(published_at) AS published,
           coalesce(sum(attempts), 0)::bigint AS attempts,
           coalesce(extract(epoch FROM max(published_at) - min(published_at)), 0)::float8 AS seconds,
           coalesce(percentile_cont(ARRAY[0.5, 0.99, 1]) WITHIN GROUP (ORDER BY extract(epoch FROM published_at - created_at)), '{0,0,0}')::float8[] AS lag
    FROM semel.outbox
)
SELECT booked.postings,
       sent.written,
       sent.published,
       sent.attempts,
       sent.seconds,
       sent.lag,
       (SELECT count(*) FROM topic_records)                     AS records,
       (SELECT count(*) FROM event)                             AS events,
       compared.lost + 3 * greatest($1 - booked.postings, 0)    AS lost,
       compared.doubled                                         AS doubled,
       (SELECT count(*) FROM behind WHERE earlier)              AS reordered,
       booked.off + balanced.off                                AS off
FROM booked, sent, compared, balanced
