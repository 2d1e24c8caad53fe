-- How many shards nobody owns that is alive.
-- Locks: nothing. Index: none, the table is tiny.
SELECT coalesce(sum(l.hi - l.lo + 1), 0)::int
FROM semel.relay_leases AS l
WHERE l.owner IS NULL
   OR l.expires_at <= clock_timestamp()
   OR NOT EXISTS (SELECT FROM semel.relays AS r WHERE r.id = l.owner AND r.alive_until > clock_timestamp())
