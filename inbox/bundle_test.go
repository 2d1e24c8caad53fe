package inbox_test

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/internal/services"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(childMain())
	}
	services.SkipExamples()
	goleak.VerifyTestMain(m)
}

// testBundle is a database with tables for effects: plain inserts and a
// balance, nothing unique that would hide a message that took effect twice.
type testBundle struct {
	*pgtest.DB
	events *recorder
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{DB: pgtest.New(t), events: &recorder{}}
	b.exec(t, `CREATE TABLE effects (message_id text NOT NULL, attempt int NOT NULL DEFAULT 1)`)
	b.exec(t, `CREATE TABLE balances (id int PRIMARY KEY, amount bigint NOT NULL)`)
	b.exec(t, `INSERT INTO balances VALUES (1, 0)`)
	return b
}

// inbox makes an inbox with short pauses; what cfg sets stands.
func (b *testBundle) inbox(t *testing.T, h handler.Func, cfg inbox.Config) *inbox.Inbox {
	t.Helper()
	return b.inboxOn(t, b.Pool, "shipping", h, cfg)
}

func (b *testBundle) inboxOn(t *testing.T, pool *pgxpool.Pool, consumer string, h handler.Func, cfg inbox.Config) *inbox.Inbox {
	t.Helper()
	cfg.Schema = b.Schema
	if cfg.QuickDelay == 0 {
		cfg.QuickDelay, cfg.QuickMaxDelay = time.Millisecond, 20*time.Millisecond
	}
	if cfg.Retry.Attempts == 0 { // what fails is dead after its quick attempts
		cfg.Retry.Attempts = cmp.Or(cfg.QuickAttempts, 3)
	}
	if cfg.OutageMaxDelay == 0 {
		cfg.OutageMaxDelay = 100 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Observer == nil {
		cfg.Observer = b.events
	}
	in, err := inbox.New(pool, consumer, h, cfg)
	require.NoError(t, err)
	return in
}

func (b *testBundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.Pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func (b *testBundle) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, b.Pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// effects is how often a message took effect.
func (b *testBundle) effects(t *testing.T, id string) int {
	t.Helper()
	return b.count(t, `SELECT count(*) FROM effects WHERE message_id = $1`, id)
}

// letters are the dead letters, oldest first.
func (b *testBundle) letters(t *testing.T) []dlq.Letter {
	t.Helper()
	store := dlq.NewStore(b.Schema)
	list, err := store.List(t.Context(), b.Pool, dlq.Filter{Limit: 1000})
	require.NoError(t, err)
	letters := make([]dlq.Letter, 0, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		whole, err := store.Load(t.Context(), b.Pool, list[i].ID)
		require.NoError(t, err)
		letters = append(letters, *whole)
	}
	return letters
}

// effect is the handler of most tests: it leaves one row.
func effect(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	_, err := tx.Exec(ctx, `INSERT INTO effects (message_id) VALUES ($1)`, msg.ID)
	return err
}

func message(id string) *handler.Message {
	return &handler.Message{ID: id, Type: "order.paid", Payload: []byte(`{"id":1}`)}
}

// recorder keeps the events of an inbox.
type recorder struct {
	mu     sync.Mutex
	events []inbox.Event
}

func (r *recorder) Observe(_ context.Context, e inbox.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) kinds(kind inbox.EventKind) []inbox.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []inbox.Event
	for _, e := range r.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}
