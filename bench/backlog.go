package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
)

// aggregateType is that of all events.
const aggregateType = "payment"

// backlog is events that wait to be published. They are kept in a table of
// their own, from which the outbox, and its counterpart by hand, are filled
// anew for each round: all sides publish the same.
type backlog struct {
	db   *database
	n    int
	name string // of the table
}

// newBacklog writes n messages down. A name is one of a schema.
func (db *database) newBacklog(ctx context.Context, name string, n int, next func() *handler.Message) (*backlog, error) {
	if _, err := db.pool.Exec(ctx, fmt.Sprintf(`CREATE UNLOGGED TABLE %s (id uuid, aggregate_id text, type text, payload bytea)`, name)); err != nil {
		return nil, fmt.Errorf("make a backlog: %w", err)
	}
	left := n
	source := pgx.CopyFromFunc(func() ([]any, error) {
		if left--; left < 0 {
			return nil, nil
		}
		msg := next()
		return []any{msg.ID, string(msg.Key), msg.Type, msg.Payload}, nil
	})
	if _, err := db.pool.CopyFrom(ctx, pgx.Identifier{name}, []string{"id", "aggregate_id", "type", "payload"}, source); err != nil {
		return nil, fmt.Errorf("make a backlog: %w", err)
	}
	return &backlog{db: db, n: n, name: name}, nil
}

// newHotMessage is of one account in nine cases of ten.
func newHotMessage() *handler.Message {
	msg := newMessage()
	if rand.IntN(10) > 0 {
		msg.Key = []byte("0") // none of the others has it
	}
	return msg
}

// inOutbox lets the backlog wait in our table, and nothing else.
func (l *backlog) inOutbox(ctx context.Context) error {
	return l.db.exec(ctx,
		`TRUNCATE outbox`,
		fmt.Sprintf(`INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) SELECT id, '%s', aggregate_id, type, payload FROM %s`, aggregateType, l.name),
		`VACUUM ANALYZE outbox`)
}

// inTableByHand lets it wait in the table of package byhand.
func (l *backlog) inTableByHand(ctx context.Context) error {
	return l.db.exec(ctx,
		`TRUNCATE outgoing`,
		fmt.Sprintf(`INSERT INTO outgoing (id, aggregate_type, aggregate_id, type, payload) SELECT id, '%s', aggregate_id, type, payload FROM %s`, aggregateType, l.name),
		`VACUUM ANALYZE outgoing`)
}

func (db *database) exec(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := db.pool.Exec(ctx, statement); err != nil {
			return fmt.Errorf("prepare the tables: %w", err)
		}
	}
	return nil
}
