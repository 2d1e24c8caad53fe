-- How large the outbox of schema $1 is: an estimate of its rows, and its bytes.
-- Locks: nothing. Reads the catalog only.
SELECT c.reltuples::bigint, pg_total_relation_size(c.oid)
FROM pg_catalog.pg_class AS c
WHERE c.oid = format('%I.outbox', $1::text)::regclass
