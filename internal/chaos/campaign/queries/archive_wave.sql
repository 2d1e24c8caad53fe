-- Writes the events $1 to $2, all a month old: most are published, one of ten is
-- discarded, one in quarantine and one pending. A payload is $3 hashes of the
-- number of its event: nothing that could be compressed.
INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, created_at, published_at, discarded_at, quarantined_at, payload)
SELECT
    md5('event ' || n)::uuid,
    'order',
    n % 100,
    'OrderPaid',
    old,
    CASE WHEN n % 10 NOT IN (0, 5, 7) THEN old END,
    CASE WHEN n % 10 = 7 THEN old END,
    CASE WHEN n % 10 IN (0, 7) THEN old END,
    (SELECT string_agg(decode(md5(n || '.' || i), 'hex'), ''::bytea ORDER BY i) FROM generate_series(1, $3::int) AS i)
FROM generate_series($1::int, $2::int) AS n, (SELECT clock_timestamp() - interval '30 days' AS old) AS month
