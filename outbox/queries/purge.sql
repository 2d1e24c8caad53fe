-- Deletes at most $4 events that were published or discarded before $3, of the
-- blocks from $1 on and before $2. What is still to be published has neither
-- time, and never matches. Returns how many it found, and how many of them nobody
-- else has deleted.
-- Locks: the rows it deletes, which nobody changes any more. Index: none, a TID
-- range scan.
WITH old AS MATERIALIZED (
    SELECT p.ctid AS place
    FROM semel.outbox AS p
    WHERE p.ctid >= $1
      AND p.ctid < $2
      AND coalesce(p.published_at, p.discarded_at) < $3
    LIMIT $4
), gone AS (
    DELETE FROM semel.outbox AS o
    WHERE o.ctid = ANY (ARRAY(SELECT old.place FROM old))
      AND coalesce(o.published_at, o.discarded_at) < $3
    RETURNING 1
)
SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM gone)
