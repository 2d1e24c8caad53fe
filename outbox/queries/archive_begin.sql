-- Begins a batch, unless somebody has one that is not done: what is read after this
-- went into none before.
-- Locks: the index entry, for a moment. Index: archive_batches_open_idx.
INSERT INTO semel.archive_batches (id)
VALUES ($1)
ON CONFLICT DO NOTHING
