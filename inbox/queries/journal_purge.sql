-- Forgets what the journal knows of messages that have not run for $2.
-- Locks: the rows. Index: attempt_journal_pkey; a few rows.
DELETE FROM semel.attempt_journal
WHERE consumer_id = $1
    AND started_at < clock_timestamp() - $2::interval
