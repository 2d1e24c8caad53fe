-- At most $2 entities of consumer $1 that versions are missing of.
-- Locks: nothing. Index: key_versions_consumer_id_idx.
SELECT k.kind, k.key, k.version, k.gaps, k.message_id, k.updated_at
FROM semel.key_versions AS k
WHERE k.consumer_id = $1
  AND k.gaps > 0
LIMIT $2
