-- Columns of the outbox of schema $1 that are not among $2, and are not computed by
-- the database.
-- Locks: nothing.
SELECT a.attname::text
FROM pg_catalog.pg_attribute AS a
WHERE a.attrelid = format('%I.outbox', $1::text)::regclass
  AND a.attnum > 0
  AND NOT a.attisdropped
  AND a.attgenerated = ''
  AND a.attname <> ALL ($2::text[])
ORDER BY a.attnum
