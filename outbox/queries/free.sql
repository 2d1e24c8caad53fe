-- The events that are still to be noted whose rows nobody else has locked.
-- Locks: their rows. Index: outbox_pkey.
SELECT o.id
FROM semel.outbox AS o
WHERE o.id = ANY ($1::uuid[])
  AND o.published_at IS NULL
FOR UPDATE SKIP LOCKED
