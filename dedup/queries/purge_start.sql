-- Where a purge begins: the moment before which rows are old, and how many blocks
-- table $3 of schema $2 has. What is claimed later is not old.
-- Locks: nothing.
SELECT
    clock_timestamp() - $1::interval,
    pg_relation_size(format('%I.%I', $2::text, $3::text)::regclass) / current_setting('block_size')::bigint
