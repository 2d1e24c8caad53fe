-- Counts a further copy of a message that is dead: one without a usable id, whose
-- claim was lost to the first copy. No row: that copy left no dead letter.
-- Locks the row. Index: dead_letters_consumer_id_message_id_idx.
UPDATE semel.dead_letters
SET count = least(count, 9223372036854775806) + 1,
    last_failed_at = clock_timestamp()
WHERE consumer_id = $1
    AND message_id = $2
    AND reason <> 'mismatch';
