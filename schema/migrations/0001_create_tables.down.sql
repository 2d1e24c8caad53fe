-- semel: oldest-binary 1
--
-- Drops the memory of what was handled: whatever is delivered again afterwards
-- runs again. The schema itself stays, others may use it.

DROP VIEW semel.dead;
DROP VIEW semel.processed;
DROP FUNCTION semel.as_text(bytea);
DROP FUNCTION semel.outcome_name(smallint);
DROP FUNCTION semel.fingerprint(text, bytea);
DROP FUNCTION semel.message_id(text);
DROP FUNCTION semel.consumer_id(text);
DROP TABLE semel.dead_letters;
DROP TABLE semel.processed_messages;
DROP TABLE semel.consumers;
DROP TABLE semel.schema_migrations;
