-- What waits in the inbox, and for what, by consumer: at most $1 of each are counted,
-- and at most $2 are looked at for whose they are and how old. What waits for no time
-- is what is left over when the others are taken off all.
-- Locks: nothing. Index: inbox_messages_pkey and inbox_messages_consumer_id_ready_at_idx,
-- without the table where it was vacuumed; inbox_messages_dead_letter_id_idx.
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), present AS (
    (
        SELECT i.consumer_id
        FROM semel.inbox_messages AS i
        ORDER BY i.consumer_id
        LIMIT 1
    )
    UNION ALL
    SELECT n.consumer_id
    FROM present AS p
    CROSS JOIN LATERAL (
        SELECT i.consumer_id
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id > p.consumer_id
        ORDER BY i.consumer_id
        LIMIT 1
    ) AS n
), parked AS MATERIALIZED (
    SELECT i.consumer_id, count(*) AS n, min(i.stored_at) AS oldest
    FROM semel.inbox_messages AS i
    WHERE i.dead_letter_id IS NOT NULL
        AND i.parked_at IS NOT NULL
    GROUP BY i.consumer_id
)
SELECT
    p.consumer_id,
    coalesce(c.name, '') AS consumer,
    stored.n AS stored,
    ready.n AS ready,
    due.n AS due,
    ahead.taken,
    coalesce(k.n, 0) AS parked,
    CASE WHEN isfinite(first.longest) THEN extract(epoch FROM clock.now - first.longest) ELSE 0 END::float8 AS oldest_ready,
    CASE WHEN isfinite(least(first.oldest, ahead.oldest, k.oldest))
        THEN extract(epoch FROM clock.now - least(first.oldest, ahead.oldest, k.oldest)) ELSE 0 END::float8 AS oldest,
    CASE WHEN isfinite(ahead.next_due) THEN ahead.next_due END AS next_due
FROM present AS p
CROSS JOIN clock
LEFT JOIN semel.consumers AS c ON c.id = p.consumer_id
LEFT JOIN parked AS k ON k.consumer_id = p.consumer_id
CROSS JOIN LATERAL (
    SELECT count(*) AS n
    FROM (
        SELECT
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id = p.consumer_id
        LIMIT $1
    ) AS counted
) AS stored
CROSS JOIN LATERAL (
    SELECT count(*) AS n
    FROM (
        SELECT
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id = p.consumer_id
            AND i.ready_at <= clock.now
        LIMIT $1
    ) AS counted
) AS ready
CROSS JOIN LATERAL (
    SELECT count(*) AS n
    FROM (
        SELECT
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id = p.consumer_id
            AND i.ready_at > clock.now
        LIMIT $1
    ) AS counted
) AS due
CROSS JOIN LATERAL (
    SELECT min(l.ready_at) AS longest, min(l.stored_at) AS oldest
    FROM (
        SELECT i.ready_at, i.stored_at
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id = p.consumer_id
            AND i.ready_at <= clock.now
        ORDER BY i.ready_at
        LIMIT $2
    ) AS l
) AS first
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE l.lease_owner IS NOT NULL) AS taken,
        min(l.ready_at) FILTER (WHERE l.lease_owner IS NULL) AS next_due,
        min(l.stored_at) AS oldest
    FROM (
        SELECT i.ready_at, i.stored_at, i.lease_owner
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id = p.consumer_id
            AND i.ready_at > clock.now
        ORDER BY i.ready_at
        LIMIT $2
    ) AS l
) AS ahead
ORDER BY consumer, p.consumer_id
