-- From now on the handler of this message succeeds.
INSERT INTO semel.mended (message)
VALUES ($1)
ON CONFLICT DO NOTHING
