//go:build plant_two_owners

package outbox

// acquireSQL takes every lease for the relay's own.
const acquireSQL = `
UPDATE semel.relay_leases AS l
SET owner = $1, epoch = l.epoch + 1, expires_at = clock_timestamp() + $2::interval
WHERE l.lo = ANY ($3::smallint[])
RETURNING l.lo, l.epoch`
