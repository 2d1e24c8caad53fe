-- The tables of schema $1 that are not vacuumed by themselves.
-- Locks: nothing. Reads the catalog only.
SELECT c.relname::text
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN LATERAL unnest(c.reloptions) AS option
WHERE n.nspname = $1
  AND c.relkind IN ('r', 'p')
  AND lower(option) IN ('autovacuum_enabled=false', 'autovacuum_enabled=off', 'autovacuum_enabled=no', 'autovacuum_enabled=0')
ORDER BY c.relname
