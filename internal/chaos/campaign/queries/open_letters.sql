-- What waits for a person, the oldest first.
SELECT id, coalesce(message_text, ''), coalesce(message_type, ''), coalesce(decided_by, '')
FROM semel.dead_letters
WHERE state = 'open'
ORDER BY id
