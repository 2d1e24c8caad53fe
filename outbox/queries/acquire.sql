-- Takes the leases of a relay's share that are free or have run out.
-- Locks: their rows; those that another relay takes at this moment are passed over.
WITH free AS MATERIALIZED (
    SELECT l.lo
    FROM semel.relay_leases AS l
    WHERE l.lo = ANY ($3::smallint[])
      AND (l.owner IS NULL OR l.expires_at < clock_timestamp())
    ORDER BY l.lo
    FOR UPDATE SKIP LOCKED
)
UPDATE semel.relay_leases AS l
SET owner = $1,
    epoch = l.epoch + 1,
    expires_at = clock_timestamp() + $2::interval
FROM free
WHERE l.lo = free.lo
RETURNING l.lo, l.epoch
