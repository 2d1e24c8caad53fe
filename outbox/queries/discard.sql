-- A person decides that an event is never published. No row: it is published or
-- discarded already.
-- Locks: its row. Index: outbox_pkey.
UPDATE semel.outbox AS o
SET discarded_at = clock_timestamp()
WHERE o.id = $1
  AND o.published_at IS NULL
  AND o.discarded_at IS NULL
RETURNING o.id
