-- Makes $6 the highest version of entity $2 that consumer $1 handled, if none is
-- higher. One row: the message may run, and what was highest before it (NULL: the
-- entity is new, taken to have had $7 and to lack $8). No row: it is older. With $9
-- the versions in between are counted as gaps.
-- Locks: the entity's row, until the transaction ends, also where it is older. So
-- handlers of one entity run one after the other. Index: key_versions_pkey.
INSERT INTO semel.key_versions AS k (consumer_id, key_id, kind, key, message_id, version, known_from, gaps)
VALUES ($1, $2, $3, $4, $5, $6, $7, CASE WHEN $9::boolean THEN $8::bigint ELSE 0 END)
ON CONFLICT (consumer_id, key_id) DO UPDATE
SET previous = k.version,
    version = excluded.version,
    message_id = excluded.message_id,
    updated_at = excluded.updated_at,
    gaps = least(k.gaps::numeric + CASE
        WHEN $9::boolean AND k.version >= 0 AND excluded.version > k.version THEN excluded.version - k.version - 1
        ELSE 0
    END, 9223372036854775807) -- where a bigint ends
WHERE k.version <= excluded.version
RETURNING k.previous
