-- Lets one writer of an aggregate go on at a time, until the transaction ends.
-- Locks: an advisory one of the database, by the aggregate's number.
SELECT pg_advisory_xact_lock($1)
