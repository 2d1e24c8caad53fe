-- Deletes at most $4 rows of before $3, of the blocks from $1 on and before $2, of
-- consumer $5 (NULL: of all), and notes how far that goes. What is stored, waits
-- for a person as a dead letter, or has made a call of which nobody knows the end,
-- stays; so does what somebody has dated by hand before 2000, since nobody knows how
-- old that is. The other calls go with their messages. Returns how many messages it
-- found, and how many of them nobody else has deleted.
-- Locks: the rows it deletes, in the order of the table, then those of their
-- consumers, which no claim takes.
-- Index: none, a TID range scan; dead_letters_consumer_id_message_id_idx and
-- dead_letters_consumer_id_message_id_fingerprint_idx; calls_open_idx, calls_pkey.
WITH old AS MATERIALIZED (
    SELECT o.ctid AS place
    FROM semel.processed_messages AS o
    WHERE o.ctid >= $1
      AND o.ctid < $2
      AND o.processed_at < $3
      AND o.processed_at >= '2000-01-01'
      AND ($5::int IS NULL OR o.consumer_id = $5)
      AND o.outcome <> 4 -- stored
      AND NOT EXISTS (
          SELECT
          FROM semel.dead_letters AS d
          WHERE d.consumer_id = o.consumer_id
            AND d.message_id = o.message_id
            AND d.reason <> 'mismatch'
            AND d.state IN ('open', 'replaying')
      )
      AND NOT EXISTS (
          SELECT
          FROM semel.dead_letters AS d
          WHERE d.consumer_id = o.consumer_id
            AND d.message_id = o.message_id
            AND d.reason = 'mismatch'
            AND d.state IN ('open', 'replaying')
      )
      AND NOT EXISTS (
          SELECT
          FROM semel.calls AS k
          WHERE k.consumer_id = o.consumer_id
            AND k.message_id = o.message_id
            AND k.state IN (1, 4) -- started, unknown
      )
    LIMIT $4
), gone AS (
    DELETE FROM semel.processed_messages AS p
    WHERE p.ctid = ANY (ARRAY(SELECT old.place FROM old))
      AND p.processed_at < $3 -- again: a replay may have claimed it anew meanwhile
    RETURNING p.consumer_id, p.message_id, p.processed_at
), called AS MATERIALIZED ( -- one look for each message: OFFSET keeps it from becoming a scan of all calls
    SELECT k.place
    FROM gone AS g
    CROSS JOIN LATERAL (
        SELECT c.ctid AS place
        FROM semel.calls AS c
        WHERE c.consumer_id = g.consumer_id
          AND c.message_id = g.message_id
        OFFSET 0
    ) AS k
), forgotten AS (
    DELETE FROM semel.calls AS c
    WHERE c.ctid = ANY (ARRAY(SELECT k.place FROM called AS k))
      AND c.state NOT IN (1, 4)
), latest AS (
    SELECT g.consumer_id, max(g.processed_at) AS processed_at
    FROM gone AS g
    GROUP BY g.consumer_id
), locked AS MATERIALIZED ( -- in one order: two purges must not wait for each other
    SELECT c.id
    FROM semel.consumers AS c
    WHERE c.id IN (SELECT l.consumer_id FROM latest AS l)
    ORDER BY c.id
    FOR NO KEY UPDATE
), noted AS (
    UPDATE semel.consumers AS c
    SET purged_before = greatest(c.purged_before, l.processed_at)
    FROM latest AS l, locked
    WHERE c.id = l.consumer_id
      AND locked.id = c.id
)
SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM gone)
