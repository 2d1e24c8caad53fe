-- All dead letters of the one consumer.
SELECT coalesce(message_text, ''), payload, reason
FROM semel.dead_letters
