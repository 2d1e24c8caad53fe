-- The relays that are alive, in the order in which they share the shards.
-- Locks: nothing. Index: none, the table is tiny.
SELECT r.id
FROM semel.relays AS r
WHERE r.alive_until > clock_timestamp()
ORDER BY r.id
