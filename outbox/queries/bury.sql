-- Forgets relays that died long ago.
-- Locks: their rows.
DELETE FROM semel.relays AS r
WHERE r.alive_until < clock_timestamp() - interval '1 day'
