-- What has become of replays: how many letters of $1 are being handled still, how many
-- were handled, and how many died again.
-- Locks: nothing. Index: dead_letters_pkey.
SELECT
    count(*) FILTER (WHERE d.state = 'replaying'),
    count(*) FILTER (WHERE d.state = 'resolved'),
    count(*) FILTER (WHERE d.state = 'open')
FROM semel.dead_letters AS d
WHERE d.id = ANY ($1::bigint[])
