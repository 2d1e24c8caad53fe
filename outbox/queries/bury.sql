-- Forgets relays that died long ago, or that somebody has made to live for ever: one
-- that does says so again.
-- Locks: their rows.
DELETE FROM semel.relays AS r
WHERE r.alive_until < clock_timestamp() - interval '1 day'
   OR r.alive_until > clock_timestamp() + interval '366 days'
