-- Has the message of a dead letter handled anew: in the place that it kept, or else
-- at the end of its key. By $6 until $7 has passed, or by any worker, at once or
-- when what is before it in its key is gone. A place that is none: see store.sql.
-- The caller holds the key's lock. Locks: the row.
-- Index: inbox_messages_pkey, inbox_messages_consumer_id_key_hash_seq_idx.
INSERT INTO semel.inbox_messages AS i (consumer_id, message_id, key_hash, key, dead_letter_id, lease_owner, ready_at, place)
SELECT
    $1::int, $2::uuid, $3::bigint, $4::bytea, $5::bigint, $6::uuid,
    clock_timestamp() + CASE WHEN $6 IS NOT NULL THEN $7::interval ELSE interval '0' END,
    coalesce((
        SELECT CASE WHEN l.place BETWEEN 1 AND 4611686018427387903 THEN l.place ELSE 0 END
        FROM semel.inbox_messages AS l
        WHERE l.consumer_id = $1
            AND l.key_hash = $3
        ORDER BY l.seq DESC
        LIMIT 1
    ), 0) + 1
ON CONFLICT (consumer_id, message_id) DO UPDATE
SET parked_at = NULL,
    attempts = 0,
    first_failed_at = NULL,
    last_failed_at = NULL,
    errors = NULL,
    stored_at = clock_timestamp(),
    dead_letter_id = excluded.dead_letter_id,
    lease_owner = excluded.lease_owner,
    ready_at = CASE
        WHEN excluded.lease_owner IS NULL AND i.parked_at IS NOT NULL AND EXISTS (
            SELECT
            FROM semel.inbox_messages AS b
            WHERE b.consumer_id = i.consumer_id
                AND b.key_hash = i.key_hash
                AND b.seq < i.seq
        ) THEN NULL
        ELSE excluded.ready_at
    END
RETURNING i.seq
