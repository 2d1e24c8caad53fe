-- Notes how consumer $1 is configured, unless that stands there already and is
-- not over a day old: a consumer that starts often writes once a day. A time ahead
-- of the clock is another machine's, and says nothing.
-- Locks: the consumer's row, which no claim takes. Index: consumers_pkey.
UPDATE semel.consumers AS c
SET settings = $2::jsonb,
    settings_at = clock_timestamp()
WHERE c.id = $1
  AND (
      c.settings IS DISTINCT FROM $2::jsonb
      OR c.settings_at IS NULL
      OR c.settings_at NOT BETWEEN clock_timestamp() - interval '1 day' AND clock_timestamp()
  )
