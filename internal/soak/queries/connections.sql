-- The server's view of the consumer's connections: a leaked one is still here.
SELECT count(*)
FROM pg_stat_activity
WHERE application_name = ANY ($1)
