-- What waits in the inbox for consumer $1, and for what: at most $2 of each are
-- counted, and at most $3 are looked at for whose they are and how old. What waits
-- for no time is what is left when the others are taken off all. By hand a time may be
-- infinite, or of another age: what is older than a duration can say, also since ever,
-- is as old as it can (9e9 s).
-- Locks: nothing. Index: inbox_messages_pkey and inbox_messages_consumer_id_ready_at_idx,
-- alone where the table was vacuumed; inbox_messages_dead_letter_id_idx.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), stored AS (
    SELECT count(*) AS n
    FROM (
        SELECT
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id = $1
        LIMIT $2
    ) AS counted
), ready AS (
    SELECT count(*) AS n
    FROM clock
    CROSS JOIN LATERAL (
        SELECT
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id = $1
            AND i.ready_at <= clock.now
        LIMIT $2
    ) AS counted
), due AS (
    SELECT count(*) AS n
    FROM clock
    CROSS JOIN LATERAL (
        SELECT
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id = $1
            AND i.ready_at > clock.now
        LIMIT $2
    ) AS counted
), parked AS (
    SELECT count(*) AS n, min(held.stored_at) AS oldest
    FROM (
        SELECT i.stored_at
        FROM semel.inbox_messages AS i
        WHERE i.dead_letter_id IS NOT NULL
            AND i.consumer_id = $1
            AND i.parked_at IS NOT NULL
        LIMIT $2
    ) AS held
), longest AS (
    SELECT min(l.ready_at) AS since, min(l.stored_at) AS oldest
    FROM clock
    CROSS JOIN LATERAL (
        SELECT i.ready_at, i.stored_at
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id = $1
            AND i.ready_at <= clock.now
        ORDER BY i.ready_at
        LIMIT $3
    ) AS l
), ahead AS (
    SELECT
        count(*) FILTER (WHERE l.lease_owner IS NOT NULL) AS taken,
        min(l.ready_at) FILTER (WHERE l.lease_owner IS NULL) AS next_due,
        min(l.stored_at) AS oldest
    FROM clock
    CROSS JOIN LATERAL (
        SELECT i.ready_at, i.stored_at, i.lease_owner
        FROM semel.inbox_messages AS i
        WHERE i.consumer_id = $1
            AND i.ready_at > clock.now
        ORDER BY i.ready_at
        LIMIT $3
    ) AS l
)
SELECT
    stored.n, ready.n, due.n, ahead.taken, parked.n,
    least(greatest(extract(epoch FROM clock.now) - extract(epoch FROM longest.since), 0), 9e9)::float8,
    least(greatest(extract(epoch FROM clock.now) - extract(epoch FROM first.stored_at), 0), 9e9)::float8,
    CASE WHEN isfinite(ahead.next_due) THEN ahead.next_due END
FROM clock, stored, ready, due, parked, longest, ahead,
    LATERAL (SELECT least(longest.oldest, ahead.oldest, parked.oldest) AS stored_at) AS first
