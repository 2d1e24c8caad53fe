-- semel: oldest-binary 1
--
-- Forgets when was purged last. Consumers first, as on the way up.

ALTER TABLE semel.consumers
    DROP COLUMN purging_at;
ALTER TABLE semel.relay_leases
    DROP COLUMN purging_at;
