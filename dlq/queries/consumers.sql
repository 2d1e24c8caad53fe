-- The names of all consumers. Locks nothing; a few rows.
SELECT name
FROM semel.consumers
ORDER BY name;
