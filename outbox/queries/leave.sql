-- A relay ends.
-- Locks: its row. Index: relays_pkey.
DELETE FROM semel.relays AS r
WHERE r.id = $1
