-- Finds at most $4 events that were published or discarded before $3, of the blocks
-- from $1 on and before $2, and how many bytes each has. What is still to be
-- published has neither time, and never matches.
-- Locks: nothing. Index: none, a TID range scan.
SELECT
    o.id,
    coalesce(octet_length(o.payload), 0) + coalesce(pg_column_size(o.header_values), 0)
FROM semel.outbox AS o
WHERE o.ctid >= $1
  AND o.ctid < $2
  AND coalesce(o.published_at, o.discarded_at) < $3
LIMIT $4
