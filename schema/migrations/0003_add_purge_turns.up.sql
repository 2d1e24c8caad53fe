-- semel: oldest-binary 1
--
-- Whose turn it is to purge: a column each in two tiny tables. Neither table is
-- rewritten; for that the default is now(), which is one value for all rows.
--
-- ALTER TABLE waits for all transactions that use the table, and whoever comes
-- after waits behind it. Consumers are first, since a transaction that handles a
-- message may use them for long, and no relay must wait for it. With lock_timeout=2s
-- in the connection string it gives up instead; then run it again.

ALTER TABLE semel.consumers
    ADD COLUMN purging_at timestamptz;

COMMENT ON COLUMN semel.consumers.purging_at IS 'When a consumer last began to purge, or was still at it: the next one of them begins only hours later.';

ALTER TABLE semel.relay_leases
    ADD COLUMN purging_at timestamptz NOT NULL DEFAULT now();

COMMENT ON COLUMN semel.relay_leases.purging_at IS 'On the row of the first shards: when a relay last began to purge the outbox, or was still at it. The next one begins only hours later.';
