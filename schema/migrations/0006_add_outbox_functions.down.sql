-- semel: oldest-binary 1
--
-- Takes the functions away. Writers that call them fail from here on; what they
-- have written stays.

DROP FUNCTION semel.outbox_write(text, text, text, jsonb, jsonb, uuid, bigint);
DROP FUNCTION semel.outbox_write_bytes(text, text, text, bytea, jsonb, uuid, bigint);
DROP FUNCTION semel.outbox_lock(text, text);
DROP FUNCTION semel.outbox_new_id();
