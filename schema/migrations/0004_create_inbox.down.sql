-- semel: oldest-binary 1
--
-- Drops the inbox with all that was not handled yet. Messages that were stored
-- stay noted as such, and no copy of them is handled: empty it first.

DROP VIEW semel.stored;
ALTER TABLE semel.consumers
    DROP COLUMN settings,
    DROP COLUMN settings_at;
DROP INDEX semel.dead_letters_resolved_at_idx;
ALTER TABLE semel.dead_letters
    DROP COLUMN redacted_at,
    DROP COLUMN decided_by;
DROP TABLE semel.attempt_journal;
DROP TABLE semel.inbox_messages;
