-- How many events are to be archived yet, and the object of the batch that is under way.
SELECT
    (SELECT count(*) FROM semel.outbox AS o WHERE o.published_at IS NOT NULL OR o.discarded_at IS NOT NULL),
    coalesce((SELECT b.object FROM semel.archive_batches AS b WHERE b.done_at IS NULL), '')
