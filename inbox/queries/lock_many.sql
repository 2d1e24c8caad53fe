-- Locks many keys as lock.sql does, in the order given: the same for all who do.
-- Locks: advisory ones of the database, by the numbers of consumer and key.
SELECT pg_advisory_xact_lock(k.number)
FROM unnest($1::bigint[]) AS k (number)
