-- Writes one event in the caller's transaction.
-- Locks: the new row. Its seq is drawn here: the caller holds the aggregate.
INSERT INTO semel.outbox (
    id, aggregatetype, aggregateid, type, version, payload, content_type, occurred_at,
    correlation_id, causation_id, source, header_names, header_values, header_tags
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
