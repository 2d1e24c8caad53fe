-- A person lets an event be tried again at once; its pauses and its maximum age
-- begin anew. No row: nothing holds it back, or it is published or discarded.
-- Locks: its row. Index: outbox_pkey.
UPDATE semel.outbox AS o
SET next_attempt_at = clock_timestamp(),
    quarantined_at = NULL,
    first_failed_at = NULL,
    lease_attempts = 0
WHERE o.id = $1
  AND o.published_at IS NULL
  AND o.discarded_at IS NULL
  AND (o.next_attempt_at IS NOT NULL OR o.quarantined_at IS NOT NULL)
RETURNING o.id
