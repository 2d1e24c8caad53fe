-- Deletes at most $4 events that were published or discarded before $3, of the
-- blocks from $1 on and before $2. What is still to be published has neither
-- time, and never matches.
-- Locks: the rows it deletes, which nobody changes any more. Index: none, a TID
-- range scan.
DELETE FROM semel.outbox AS o
WHERE o.ctid = ANY (ARRAY(
        SELECT p.ctid
        FROM semel.outbox AS p
        WHERE p.ctid >= $1
          AND p.ctid < $2
          AND coalesce(p.published_at, p.discarded_at) < $3
        LIMIT $4
    ))
  AND coalesce(o.published_at, o.discarded_at) < $3
