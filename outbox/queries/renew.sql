-- Prolongs the leases of a relay.
-- Locks: their rows.
UPDATE semel.relay_leases AS l
SET expires_at = clock_timestamp() + $2::interval
WHERE l.owner = $1
RETURNING l.lo, l.epoch
