-- Says that a relay is alive.
-- Locks: its row. Index: relays_pkey.
INSERT INTO semel.relays (id, name, alive_until)
VALUES ($1, $2, clock_timestamp() + $3::interval)
ON CONFLICT (id) DO UPDATE
SET alive_until = excluded.alive_until
