-- Gives leases back before they run out.
-- Locks: their rows.
UPDATE semel.relay_leases AS l
SET owner = NULL,
    expires_at = '-infinity'
WHERE l.owner = $1
  AND l.lo = ANY ($2::smallint[])
