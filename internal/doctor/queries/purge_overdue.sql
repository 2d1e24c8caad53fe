-- Whether consumer $1 has not purged for a day though there is what it could
-- have purged: handled more than $2 and a day ago, and neither stored nor waiting
-- for a person, nor dated by hand before 2000, which no purge deletes. Only the first
-- blocks of the table are looked at: what is oldest is there, and a table of a hundred
-- million rows is not read for this.
-- Locks: nothing. Index: none, a TID range scan;
-- dead_letters_consumer_id_message_id_idx and
-- dead_letters_consumer_id_message_id_fingerprint_idx.
SELECT
    coalesce((
        SELECT c.purging_at > clock_timestamp() - interval '1 day'
        FROM semel.consumers AS c
        WHERE c.id = $1
    ), false),
    EXISTS (
        SELECT
        FROM semel.processed_messages AS o
        WHERE o.ctid < '(8192,0)'
          AND o.consumer_id = $1
          AND o.processed_at < clock_timestamp() - $2::interval - interval '1 day'
          AND o.processed_at >= '2000-01-01'
          AND o.outcome <> 4 -- stored
          AND NOT EXISTS (
              SELECT
              FROM semel.dead_letters AS d
              WHERE d.consumer_id = o.consumer_id
                AND d.message_id = o.message_id
                AND d.reason <> 'mismatch'
                AND d.state IN ('open', 'replaying')
          )
          AND NOT EXISTS (
              SELECT
              FROM semel.dead_letters AS d
              WHERE d.consumer_id = o.consumer_id
                AND d.message_id = o.message_id
                AND d.reason = 'mismatch'
                AND d.state IN ('open', 'replaying')
          )
    )
