-- How many dead letters match; an empty filter matches all. Locks nothing.
-- Index: dead_letters_id_idx for open ones, else the whole table.
SELECT count(*)
FROM semel.dead_letters AS d
WHERE ($1::text = '' OR d.consumer_id = semel.consumer_id($1))
    AND ($2::text = '' OR d.state = $2)
    AND ($3::text = '' OR d.reason = $3)
    AND ($4::text = '' OR d.message_type = $4)
    AND ($5::text = '' OR d.owner = $5)
    AND (NOT $6::bool OR coalesce(d.owner, '') = '');
