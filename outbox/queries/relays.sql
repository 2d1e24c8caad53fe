-- The relays that are alive, and how many shards each owns.
-- Locks: nothing. Index: none, the tables are tiny.
SELECT r.id, r.name, r.started_at, coalesce(sum(l.hi - l.lo + 1), 0)::int
FROM semel.relays AS r
LEFT JOIN semel.relay_leases AS l ON l.owner = r.id AND l.expires_at > clock_timestamp()
WHERE r.alive_until > clock_timestamp()
GROUP BY r.id
ORDER BY r.id
