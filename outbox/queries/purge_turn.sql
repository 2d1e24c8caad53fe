-- Takes the turn to purge the outbox. One row: go ahead. No row: a relay began, or
-- was still at it, less than $1 ago; a new outbox has nothing old. A time ahead of
-- the clock is another machine's, and says nothing.
-- Locks: the row of the first lease, for a moment. Index: relay_leases_pkey.
UPDATE semel.relay_leases AS l
SET purging_at = clock_timestamp()
WHERE l.lo = 0
  AND l.purging_at NOT BETWEEN clock_timestamp() - $1::interval AND clock_timestamp()
