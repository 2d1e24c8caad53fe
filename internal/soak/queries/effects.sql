-- All effects in the order of their writing. Index: effects_pkey.
SELECT message, n
FROM semel.effects
ORDER BY id
