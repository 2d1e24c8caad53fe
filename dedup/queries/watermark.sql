-- How far the purge of a consumer has come: what it handled before may be forgotten.
-- A statement of its own behind the claim: its snapshot must follow the claim's
-- wait for a purge that deletes the row at this moment.
-- Locks: nothing. Index: consumers_pkey.
SELECT c.purged_before
FROM semel.consumers AS c
WHERE c.id = $1
