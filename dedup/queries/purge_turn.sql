-- Takes the turn to purge what consumer $1 handled. One row: go ahead. No row:
-- somebody began, or was still at it, less than $2 ago; a new consumer has
-- nothing old. A time ahead of the clock is another machine's, and says nothing.
-- Locks: the consumer's row, which no claim takes. Index: consumers_pkey.
UPDATE semel.consumers AS c
SET purging_at = clock_timestamp()
WHERE c.id = $1
  AND coalesce(c.purging_at, c.created_at) NOT BETWEEN clock_timestamp() - $2::interval AND clock_timestamp()
