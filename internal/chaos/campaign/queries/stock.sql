-- What is not over yet: delayed for long, else in the inbox, in the journal, dead
-- and undecided.
SELECT
    count(*) FILTER (WHERE delayed),
    count(*) FILTER (WHERE NOT delayed),
    (SELECT count(*) FROM semel.attempt_journal),
    (SELECT count(*) FROM semel.dead_letters WHERE state IN ('open', 'replaying'))
FROM semel.inbox_messages
CROSS JOIN LATERAL (
    SELECT lease_owner IS NULL AND coalesce(ready_at > clock_timestamp() + interval '1 minute', false) AS delayed
) AS d
