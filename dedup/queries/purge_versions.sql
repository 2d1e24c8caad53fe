-- Deletes at most $4 rows of before $3, of the blocks from $1 on and before $2, of
-- consumer $5 (NULL: of all), but for what somebody has dated by hand before 2000.
-- Returns how many it found, and how many of them nobody else has deleted or brought a
-- newer version to.
-- Locks: the rows it deletes; it passes over one that a handler has, whose entity is not old.
-- Index: none, a TID range scan.
WITH old AS MATERIALIZED (
    SELECT o.ctid AS place
    FROM semel.key_versions AS o
    WHERE o.ctid >= $1
      AND o.ctid < $2
      AND o.updated_at < $3
      AND o.updated_at >= '2000-01-01'
      AND ($5::int IS NULL OR o.consumer_id = $5)
    LIMIT $4
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM semel.key_versions AS k
    WHERE k.ctid = ANY (ARRAY(SELECT old.place FROM old))
    RETURNING 1
)
SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM gone)
