-- semel: oldest-binary 1
--
-- Drops the ledger of calls and the versions of entities. Calls that are under way
-- would be made again, under the same keys; entities would take an older version:
-- stop the consumers first.

DROP TABLE semel.key_versions;
DROP FUNCTION semel.call_state_name(smallint);
DROP TABLE semel.calls;
ALTER TABLE semel.inbox_messages ALTER COLUMN payload SET COMPRESSION default;
ALTER TABLE semel.inbox_messages RESET (toast_tuple_target);
