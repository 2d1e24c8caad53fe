-- Deletes rows that are in the archive, each only as the version that went there.
-- Returns how many there still were.
-- Locks: the rows it deletes, which nobody changes any more. Index: none, TID scans.
WITH gone AS (
    DELETE FROM semel.outbox AS o
    USING unnest($1::uuid[], $2::text[], $3::text[]) AS archived (id, place, xmin)
    WHERE o.id = archived.id
      AND o.ctid = archived.place::tid
      AND o.xmin::text = archived.xmin
    RETURNING 1
)
SELECT count(*) FROM gone
