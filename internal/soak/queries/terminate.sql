-- Ends the sessions of the consumer, whatever they are doing.
SELECT count(pg_terminate_backend(pid))
FROM pg_stat_activity
WHERE application_name = ANY ($1)
