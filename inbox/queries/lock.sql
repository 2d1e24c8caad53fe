-- Lets one writer at a time store messages of a key, or take one out, until the
-- transaction ends: so the order of seq is the order of commits, and whoever takes
-- the first out sees what waits behind it.
-- Locks: an advisory one of the database, by the number of consumer and key.
SELECT pg_advisory_xact_lock($1)
