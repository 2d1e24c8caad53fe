-- The work of package byhand, as pgbench does it. Its ids rise together over
-- all clients, as UUIDv7 ids do: one place of the index grows.
\set n :n + 1
\set id :n * 16 + :client_id
\set account random(1, 10000)
BEGIN;
INSERT INTO handled (consumer_id, message_id) VALUES (:consumer, lpad((:id)::text, 32, '0')::uuid) ON CONFLICT DO NOTHING;
UPDATE accounts SET balance = balance + 1 WHERE id = :account;
COMMIT;
