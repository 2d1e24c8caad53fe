-- Claims many messages of one consumer for the calling transaction, in the order of
-- their ids, so that two who claim the same ones wait for each other only one way.
-- A row for each that was not claimed before; a copy in the same call is no row.
-- Locks: the keys of the new rows, until the transaction ends. Index: processed_messages_pkey.
INSERT INTO semel.processed_messages (consumer_id, message_id, fingerprint, message_text, outcome)
SELECT $1, m.message_id, m.fingerprint, m.message_text, $5
FROM unnest($2::uuid[], $3::bigint[], $4::text[]) AS m (message_id, fingerprint, message_text)
ORDER BY m.message_id
ON CONFLICT (consumer_id, message_id) DO NOTHING
RETURNING message_id
