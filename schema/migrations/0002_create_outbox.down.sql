-- semel: oldest-binary 1
--
-- Drops the outbox with all that was not published yet.

DROP VIEW semel.events;
DROP TABLE semel.relay_leases;
DROP TABLE semel.relays;
DROP TABLE semel.outbox;
DROP FUNCTION semel.shard(text, text);
ALTER TABLE semel.consumers
    DROP COLUMN purged_before;
