-- Mends what waits for long, and makes it ready.
WITH due AS (
    UPDATE semel.inbox_messages
    SET ready_at = clock_timestamp()
    WHERE lease_owner IS NULL
        AND ready_at > clock_timestamp() + interval '1 minute'
    RETURNING message_text
)
INSERT INTO semel.mended (message)
SELECT message_text
FROM due
