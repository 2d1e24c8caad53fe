-- Notes what a broker has confirmed, for as long as its shards are ours: $2 are their
-- leases, $3 the epochs under which the events were read.
-- Locks: the rows of the events. Index: outbox_pkey.
UPDATE semel.outbox AS o
SET published_at = clock_timestamp()
WHERE o.id = ANY ($1::uuid[])
  AND o.published_at IS NULL
  AND (o.shard & 252::smallint) = ANY (ARRAY(
      SELECT l.lo
      FROM unnest($2::smallint[], $3::bigint[]) AS mine (lo, epoch)
      JOIN semel.relay_leases AS l ON l.lo = mine.lo
      WHERE l.owner = $4
        AND l.epoch = mine.epoch
  ))
