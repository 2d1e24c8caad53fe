-- The rows of these events, as far as they were published or discarded before $2, in
-- the order of the archive, and which version of each row it is: an update makes a
-- new one.
-- Locks: nothing. Index: outbox_pkey.
SELECT
    o.ctid::text, o.xmin::text, o.seq, o.id, o.aggregatetype, o.aggregateid, o.type, o.version,
    o.created_at, o.published_at, o.discarded_at, o.occurred_at, o.content_type, o.correlation_id, o.causation_id, o.source,
    o.payload, o.header_names, o.header_values, o.header_tags, o.attempts, o.last_error,
    o.first_failed_at, o.next_attempt_at, o.quarantined_at, o.lease_epoch, o.lease_attempts
FROM semel.outbox AS o
WHERE o.id = ANY ($1::uuid[])
  AND coalesce(o.published_at, o.discarded_at) < $2
ORDER BY o.seq, o.id
