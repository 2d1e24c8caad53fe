-- Writes many events at once, in the order in which they are given. The headers
-- of all stand one behind the other; from and to say which are whose.
-- Locks: the new rows. Their seq is drawn here, after the sort.
INSERT INTO semel.outbox (
    id, aggregatetype, aggregateid, type, version, payload, content_type, occurred_at,
    correlation_id, causation_id, source, header_names, header_values, header_tags
)
SELECT
    e.id, e.aggregatetype, e.aggregateid, e.type, e.version, e.payload, e.content_type, e.occurred_at,
    e.correlation_id, e.causation_id, e.source,
    CASE WHEN e.header_to >= e.header_from THEN ($15::text[])[e.header_from:e.header_to] END,
    CASE WHEN e.header_to >= e.header_from THEN ($16::bytea[])[e.header_from:e.header_to] END,
    e.header_tags
FROM unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bytea[], $7::text[], $8::timestamptz[],
    $9::text[], $10::text[], $11::text[], $12::text[], $13::int[], $14::int[]
) WITH ORDINALITY AS e (
    id, aggregatetype, aggregateid, type, version, payload, content_type, occurred_at,
    correlation_id, causation_id, source, header_tags, header_from, header_to, n
)
ORDER BY e.n
