-- Deletes what a broker has confirmed, for as long as the shard is ours.
-- Locks: the rows of the events. Index: outbox_pkey.
DELETE FROM semel.outbox AS o
USING unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS done (id, lo, epoch), semel.relay_leases AS l
WHERE o.id = done.id
  AND o.published_at IS NULL
  AND l.lo = done.lo
  AND l.owner = $4
  AND l.epoch = done.epoch
