-- All dead letters of the one consumer.
SELECT coalesce(message_text, ''), payload, reason, state
FROM semel.dead_letters
