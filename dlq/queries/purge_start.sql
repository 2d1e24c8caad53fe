-- Where a purge begins: the moments before which dead letters are deleted ($1 ago)
-- and redacted ($2 ago), NULL for never, the consumer of name $3, and how many
-- blocks the table of schema $4 has. None if nothing that is closed is old enough
-- and open ones ($5) are to stay, or if no such consumer is registered.
-- Locks: nothing. Index: dead_letters_resolved_at_idx; consumers_name_key.
WITH start AS MATERIALIZED (
    SELECT
        clock_timestamp() - $1::interval AS delete_before,
        clock_timestamp() - $2::interval AS redact_before,
        (SELECT c.id FROM semel.consumers AS c WHERE c.name = $3::text) AS consumer_id
)
SELECT
    s.delete_before,
    s.redact_before,
    s.consumer_id,
    CASE
        WHEN $3::text <> '' AND s.consumer_id IS NULL THEN 0
        WHEN $5::bool OR (SELECT min(d.resolved_at) FROM semel.dead_letters AS d) < greatest(s.delete_before, s.redact_before)
            THEN pg_relation_size(format('%I.dead_letters', $4::text)::regclass) / current_setting('block_size')::bigint
        ELSE 0
    END
FROM start AS s;
