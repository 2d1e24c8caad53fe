-- Version $3 of entity $2 came late: it is no gap any more, if it was one.
-- Locks: the entity's row, which the guard holds. Index: key_versions_pkey.
UPDATE semel.key_versions AS k
SET gaps = greatest(k.gaps, 1) - 1
WHERE k.consumer_id = $1
  AND k.key_id = $2
  AND k.known_from < $3
