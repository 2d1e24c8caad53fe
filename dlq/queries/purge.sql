-- Deletes dead letters that were closed before $3, and takes payload and header
-- values off those that were closed before $4 (NULL: none): at most $7 of them, of
-- the blocks from $1 on and before $2, of consumer $6 (NULL: of all). $5 says that
-- an open one counts as closed when it failed last. What is being replayed stays,
-- and so does what the inbox refers to: here is the only copy of that message. What
-- somebody has closed by hand without saying when counts as closed now.
-- Returns how many it found, and how many of them are deleted and redacted: others
-- may have been faster.
-- Locks: the rows it changes. Who has opened one again meanwhile has changed its
-- state or its time, and it stays.
-- Index: none, a TID range scan.
WITH old AS MATERIALIZED (
    SELECT
        d.ctid AS place,
        coalesce(c.closed_at < $3::timestamptz, false) AS is_over
    FROM semel.dead_letters AS d
    CROSS JOIN LATERAL (
        SELECT CASE d.state WHEN 'open' THEN d.last_failed_at ELSE d.resolved_at END AS closed_at
    ) AS c
    WHERE d.ctid >= $1
        AND d.ctid < $2
        AND (d.state IN ('resolved', 'discarded') OR ($5::bool AND d.state = 'open'))
        AND (c.closed_at < $3::timestamptz OR (c.closed_at < $4::timestamptz AND d.redacted_at IS NULL))
        AND ($6::int IS NULL OR d.consumer_id = $6)
        AND NOT EXISTS (
            SELECT
            FROM semel.inbox_messages AS i
            WHERE i.dead_letter_id = d.id
        )
    LIMIT $7
), deleted AS (
    DELETE FROM semel.dead_letters AS d
    WHERE d.ctid = ANY (ARRAY(SELECT old.place FROM old WHERE old.is_over))
        AND (d.state IN ('resolved', 'discarded') OR ($5::bool AND d.state = 'open'))
        AND CASE d.state WHEN 'open' THEN d.last_failed_at ELSE d.resolved_at END < $3::timestamptz
    RETURNING 1
), redacted AS (
    UPDATE semel.dead_letters AS d
    SET payload = NULL,
        header_values = NULL,
        redacted_at = clock_timestamp()
    WHERE d.ctid = ANY (ARRAY(SELECT old.place FROM old WHERE NOT old.is_over))
        AND (d.state IN ('resolved', 'discarded') OR ($5::bool AND d.state = 'open'))
        AND CASE d.state WHEN 'open' THEN d.last_failed_at ELSE d.resolved_at END < $4::timestamptz
    RETURNING 1
), dated AS (
    UPDATE semel.dead_letters AS d
    SET resolved_at = clock_timestamp()
    WHERE d.ctid = ANY (ARRAY(
        SELECT u.ctid
        FROM semel.dead_letters AS u
        WHERE u.ctid >= $1
            AND u.ctid < $2
            AND u.state IN ('resolved', 'discarded')
            AND u.resolved_at IS NULL
            AND ($6::int IS NULL OR u.consumer_id = $6)
        LIMIT $7
    ))
        AND d.state IN ('resolved', 'discarded')
        AND d.resolved_at IS NULL
)
SELECT
    (SELECT count(*) FROM old),
    (SELECT count(*) FROM deleted),
    (SELECT count(*) FROM redacted);
