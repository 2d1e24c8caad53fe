-- The batch that is not done yet; there is at most one.
-- Locks: nothing. Index: archive_batches_open_idx.
SELECT b.id, b.event_ids, b.object, b.events, b.sha256, b.first_seq, b.last_seq, b.archived_at, b.retain_until, b.verified_at IS NOT NULL
FROM semel.archive_batches AS b
WHERE b.done_at IS NULL
