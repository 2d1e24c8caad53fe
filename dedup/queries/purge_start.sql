-- Where a purge begins: the moment before which rows are old, and how many blocks
-- the table of schema $2 has. What is claimed later is not old.
-- Locks: nothing.
SELECT
    clock_timestamp() - $1::interval,
    pg_relation_size(format('%I.processed_messages', $2::text)::regclass) / current_setting('block_size')::bigint
