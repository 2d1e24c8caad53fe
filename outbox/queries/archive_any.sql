-- Reports whether anything was ever archived, or is to be.
-- Locks: nothing.
SELECT EXISTS (SELECT FROM semel.archive_batches)
