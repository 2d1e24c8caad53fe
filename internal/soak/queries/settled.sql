-- How many messages have had their effect or are dead. Counts a double twice.
SELECT (SELECT count(*) FROM semel.effects) + (SELECT count(*) FROM semel.dead_letters)
