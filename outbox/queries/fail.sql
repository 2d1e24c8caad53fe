-- Notes a failed attempt, for as long as the shard is ours. The event waits for
-- its next one, or goes into quarantine: at once ($5), or when the next one
-- would come after the maximum age ($7), which counts from the first failure.
-- Locks: the row of the event, if nobody else has, and then the lease, so that the next
-- owner knows of it before it reads. Index: outbox_pkey.
WITH mine AS MATERIALIZED (
    SELECT o.id, $5::boolean OR least(o.first_failed_at, clock_timestamp()) + $7::interval < clock_timestamp() + $6::interval AS given_up
    FROM semel.outbox AS o
    JOIN semel.relay_leases AS l ON l.lo = (o.shard & 252::smallint)
    WHERE o.id = $1
      AND o.published_at IS NULL
      AND o.discarded_at IS NULL
      AND l.owner = $2
      AND l.epoch = $3
    FOR UPDATE OF o NOWAIT
    FOR SHARE OF l
)
UPDATE semel.outbox AS o
SET attempts = least(o.attempts, 2147483646) + 1,
    lease_attempts = CASE WHEN o.lease_epoch = $3 THEN least(o.lease_attempts, 2147483646) + 1 ELSE 1 END,
    lease_epoch = $3,
    first_failed_at = least(o.first_failed_at, clock_timestamp()),
    last_error = $4,
    next_attempt_at = CASE WHEN NOT mine.given_up THEN clock_timestamp() + $6::interval END,
    quarantined_at = CASE WHEN mine.given_up THEN clock_timestamp() END
FROM mine
WHERE o.id = mine.id
RETURNING o.quarantined_at IS NOT NULL, o.attempts, o.lease_attempts
