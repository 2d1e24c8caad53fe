-- A relay ends, and gives everything back.
-- Locks: its row and those of its leases. Index: relays_pkey.
WITH gone AS (
    DELETE FROM semel.relays AS r
    WHERE r.id = $1
)
UPDATE semel.relay_leases AS l
SET owner = NULL,
    expires_at = '-infinity'
WHERE l.owner = $1
