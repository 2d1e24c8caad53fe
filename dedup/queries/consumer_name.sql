-- The name registered under a consumer's number.
-- Locks: nothing. Index: consumers_pkey.
SELECT name
FROM semel.consumers
WHERE id = $1
