package outbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// deadline is how long a test waits for a state. It is long because the
// machine is busy with other tests.
const (
	deadline = time.Minute
	tick     = 10 * time.Millisecond
)

// testBundle is an outbox in a schema of its own.
type testBundle struct {
	*pgtest.DB
	writer outbox.Writer
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	db := pgtest.New(t)
	return &testBundle{DB: db, writer: outbox.NewWriter(db.Schema)}
}

// order is an event of order id.
func order(id string, version int64) outbox.Event {
	return outbox.Event{AggregateType: "order", AggregateID: id, Type: "OrderPaid", Version: version, Payload: []byte(`{"id": "` + id + `"}`)}
}

// write commits events.
func (b *testBundle) write(t *testing.T, events ...outbox.Event) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		return b.writer.Write(t.Context(), tx, events...)
	}))
}

func (b *testBundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.Pool.Exec(t.Context(), schema.Qualify(sql, b.Schema), args...)
	require.NoError(t, err)
}

// query returns the one value of a query.
func query[T any](t *testing.T, b *testBundle, sql string, args ...any) (value T) {
	t.Helper()
	require.NoError(t, b.Pool.QueryRow(t.Context(), schema.Qualify(sql, b.Schema), args...).Scan(&value))
	return value
}

// begin starts a transaction that is rolled back unless the test ends it.
func (b *testBundle) begin(t *testing.T) pgx.Tx {
	t.Helper()
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}
