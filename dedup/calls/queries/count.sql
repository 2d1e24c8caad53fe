-- How many calls a person has to look at.
-- Locks: nothing. Index: calls_open_idx.
SELECT count(*)
FROM semel.calls AS c
WHERE c.state IN (1, 4) -- for the index
  AND c.state = 4 -- unknown
