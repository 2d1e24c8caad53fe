-- What consumer $1 knows of entity $2. Locks: nothing. Index: key_versions_pkey.
SELECT k.kind, k.key, k.version, k.gaps, k.message_id, k.updated_at
FROM semel.key_versions AS k
WHERE k.consumer_id = $1
  AND k.key_id = $2
