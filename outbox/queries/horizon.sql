-- The last seq that was drawn, and the transactions that may have drawn one and
-- have not ended. First the one, then the other ($1 is read inside, and OFFSET 0
-- keeps it so): a transaction that is not in the list draws higher ones.
-- Locks: nothing. A transaction that writes to a table locks it until it has
-- ended, and what it wrote is visible before it lets go.
SELECT s.last_value, l.writers
FROM semel.outbox_seq_seq AS s
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(k.virtualtransaction), '{}') AS writers
    FROM pg_catalog.pg_locks AS k
    WHERE s.last_value > 0
      AND k.locktype = 'relation'
      AND k.mode = 'RowExclusiveLock'
      AND k.granted
      AND k.relation = format('%I.outbox', $1::text)::regclass
      AND k.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())
    OFFSET 0
) AS l
