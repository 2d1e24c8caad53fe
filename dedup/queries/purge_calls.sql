-- Deletes at most $4 calls of before $3, of the blocks from $1 on and before $2, of
-- consumer $5 (NULL: of all), whose messages have no row: those of the others go with
-- it. One of which nobody knows the end, that somebody has in hand, or has dated by
-- hand before 2000, stays. Returns how many it found, and how many of them nobody else
-- has changed or deleted.
-- Locks: the rows it deletes. Index: none, a TID range scan; processed_messages_pkey.
WITH old AS MATERIALIZED (
    SELECT o.ctid AS place
    FROM semel.calls AS o
    WHERE o.ctid >= $1
      AND o.ctid < $2
      AND o.updated_at < $3
      AND o.updated_at >= '2000-01-01'
      AND ($5::int IS NULL OR o.consumer_id = $5)
      AND o.state NOT IN (1, 4) -- started, unknown
      AND coalesce(o.lease_until, o.updated_at) < $3 -- in nobody's hand
      AND NOT EXISTS (
          SELECT
          FROM semel.processed_messages AS p
          WHERE p.consumer_id = o.consumer_id
            AND p.message_id = o.message_id
      )
    LIMIT $4
), gone AS (
    DELETE FROM semel.calls AS c
    WHERE c.ctid = ANY (ARRAY(SELECT old.place FROM old))
      AND c.updated_at < $3 -- again: somebody may have taken it in hand meanwhile
      AND c.state NOT IN (1, 4)
      AND coalesce(c.lease_until, c.updated_at) < $3
    RETURNING 1
)
SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM gone)
