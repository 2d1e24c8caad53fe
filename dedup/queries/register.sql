-- Registers a consumer's name. No row: its number is taken, by the same name or by another.
-- Locks: the new row. Index: consumers_pkey.
INSERT INTO semel.consumers (id, name)
VALUES ($1, $2)
ON CONFLICT (id) DO NOTHING
