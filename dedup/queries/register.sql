-- Registers a consumer's name. No row: its number is taken, by the same name or by another.
-- No conflict target: of two processes that register one name at once, either key may see the other first.
-- Locks: the new row. Index: consumers_pkey, consumers_name_key.
INSERT INTO semel.consumers (id, name)
VALUES ($1, $2)
ON CONFLICT DO NOTHING
