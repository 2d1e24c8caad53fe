-- Takes the leases of a relay's share that are free or have run out, or that somebody
-- has made to last for ever and whose owner is dead.
-- Locks: their rows; those that another relay takes at this moment are passed over.
WITH free AS MATERIALIZED (
    SELECT l.lo
    FROM semel.relay_leases AS l
    WHERE l.lo = ANY ($3::smallint[])
      AND (
        l.owner IS NULL
        OR l.expires_at < clock_timestamp()
        OR (
            l.expires_at > clock_timestamp() + interval '366 days'
            AND NOT EXISTS (SELECT FROM semel.relays AS r WHERE r.id = l.owner AND r.alive_until > clock_timestamp())
        )
    )
    ORDER BY l.lo
    FOR UPDATE SKIP LOCKED
)
UPDATE semel.relay_leases AS l
SET owner = $1,
    epoch = greatest(l.epoch, 0) + 1,
    expires_at = clock_timestamp() + $2::interval
FROM free
WHERE l.lo = free.lo
RETURNING l.lo, l.epoch
