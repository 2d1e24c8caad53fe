-- Where a purge begins: the moment before which events are old, and how many
-- blocks the outbox of schema $2 has. What is written later is not old.
-- Locks: nothing.
SELECT
    clock_timestamp() - $1::interval,
    pg_relation_size(format('%I.outbox', $2::text)::regclass) / current_setting('block_size')::bigint
