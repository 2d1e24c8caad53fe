package byhand

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/handler"
)

// OutboxTable is what a relay by hand needs: the narrowest row, an index that
// holds nothing but what is to be published, and the same vacuuming as ours.
const OutboxTable = `
CREATE TABLE outgoing (
    seq            bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    created_at     timestamptz NOT NULL DEFAULT now(),
    published_at   timestamptz,
    id             uuid        NOT NULL PRIMARY KEY,
    aggregate_type text        NOT NULL,
    aggregate_id   text        NOT NULL,
    type           text        NOT NULL,
    payload        bytea       NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 100000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX outgoing_seq_idx ON outgoing (seq) WHERE published_at IS NULL`

// The statements of a relay.
const (
	Take = `
SELECT id, aggregate_id, type, payload, created_at
FROM outgoing
WHERE published_at IS NULL
ORDER BY seq
LIMIT $1
FOR UPDATE SKIP LOCKED`

	Mark = `UPDATE outgoing SET published_at = now() WHERE id = ANY ($1)`
)

// Relay publishes events batch by batch. Any number of goroutines may share
// one: what one of them has locked the others pass over, and so two events of
// one aggregate may be published at once, in either order.
type Relay struct {
	Pool      *pgxpool.Pool
	Batch     int
	Publisher handler.Publisher
}

// Next publishes the next events and returns how many. Its transaction is open
// while it talks to the broker: that is what keeps others away from them.
func (r *Relay) Next(ctx context.Context) (int, error) {
	tx, err := r.Pool.Begin(ctx)
	if err != nil {
		return 0, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // after the commit it does nothing
	ids, msgs, err := r.take(ctx, tx)
	if err != nil {
		return 0, fmt.Errorf("take events: %w", err)
	}
	if len(msgs) == 0 {
		return 0, nil
	}
	if err := errors.Join(r.Publisher.Publish(ctx, msgs)...); err != nil {
		return 0, fmt.Errorf("publish %d events: %w", len(msgs), err)
	}
	if _, err := tx.Exec(ctx, Mark, ids); err != nil {
		return 0, fmt.Errorf("mark %d events: %w", len(msgs), err)
	}
	if err := tx.Commit(ctx); err != nil {
		return 0, fmt.Errorf("commit %d events: %w", len(msgs), err)
	}
	return len(msgs), nil
}

func (r *Relay) take(ctx context.Context, tx pgx.Tx) ([]pgtype.UUID, []*handler.Message, error) {
	rows, err := tx.Query(ctx, Take, r.Batch)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	ids, msgs := make([]pgtype.UUID, 0, r.Batch), make([]*handler.Message, 0, r.Batch)
	for rows.Next() {
		var id pgtype.UUID
		msg := &handler.Message{}
		if err := rows.Scan(&id, &msg.Key, &msg.Type, &msg.Payload, &msg.OccurredAt); err != nil {
			return nil, nil, err
		}
		msg.ID = id.String()
		ids, msgs = append(ids, id), append(msgs, msg)
	}
	return ids, msgs, rows.Err()
}

// Insert writes an event to the outbox as it is filled by hand: the columns
// that have no default.
const Insert = `INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES ($1, $2, $3, $4, $5)`

// Write writes an event in the transaction of the change it tells of.
func Write(ctx context.Context, tx pgx.Tx, aggregateType string, msg *handler.Message) error {
	if _, err := tx.Exec(ctx, Insert, msg.ID, aggregateType, string(msg.Key), msg.Type, msg.Payload); err != nil {
		return fmt.Errorf("write event %s: %w", msg.ID, err)
	}
	return nil
}
