-- Gives leases back before they run out. The epoch keeps a statement that comes
-- late from giving back what was taken anew.
-- Locks: their rows.
UPDATE semel.relay_leases AS l
SET owner = NULL,
    expires_at = '-infinity'
FROM unnest($2::smallint[], $3::bigint[]) AS given (lo, epoch)
WHERE l.lo = given.lo
  AND l.owner = $1
  AND l.epoch = given.epoch
