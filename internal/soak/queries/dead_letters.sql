-- The messages in the dead letters of the one consumer, each as often as it is there.
SELECT coalesce(message_text, '')
FROM semel.dead_letters
