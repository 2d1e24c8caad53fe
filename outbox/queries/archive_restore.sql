-- Puts a row of the archive back as it was. No row: there is an event with this id.
-- Locks: the row. Index: outbox_pkey.
INSERT INTO semel.outbox (
    seq, id, aggregatetype, aggregateid, type, version,
    created_at, published_at, discarded_at, occurred_at, content_type, correlation_id, causation_id, source,
    payload, header_names, header_values, header_tags, attempts, last_error,
    first_failed_at, next_attempt_at, quarantined_at, lease_epoch, lease_attempts
)
OVERRIDING SYSTEM VALUE
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)
ON CONFLICT (id) DO NOTHING
