-- Takes out what holds its key for a dead letter that is settled, or not there: by
-- a program of before there was an inbox, or by hand. Nobody could decide about it.
-- Locks: the rows. Index: inbox_messages_dead_letter_id_idx, dead_letters_pkey.
DELETE FROM semel.inbox_messages AS i
WHERE i.consumer_id = $1
    AND i.parked_at IS NOT NULL
    AND i.dead_letter_id IS NOT NULL
    AND NOT EXISTS (
        SELECT
        FROM semel.dead_letters AS d
        WHERE d.id = i.dead_letter_id
            AND d.state IN ('open', 'replaying')
    )
