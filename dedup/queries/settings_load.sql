-- How each consumer was configured when it last started. NULL: it has not started
-- with a version that notes it, or its role may not.
-- Locks: nothing. Reads the whole table: a row for each consumer.
SELECT c.name, c.settings, c.settings_at
FROM semel.consumers AS c
ORDER BY c.name
