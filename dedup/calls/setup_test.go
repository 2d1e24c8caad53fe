package calls_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/pgtest"
)

const (
	consumer = "billing"
	step     = "create-invoice"
)

// testBundle is a ledger on a schema of its own, and a provider to call.
type testBundle struct {
	*pgtest.DB
	ledger   *calls.Ledger
	provider *provider
	msg      *handler.Message
}

func setup(t *testing.T, configure ...func(*calls.Config)) *testBundle {
	t.Helper()
	db := pgtest.New(t)
	b := &testBundle{DB: db, provider: &provider{done: map[string][]byte{}}, msg: &handler.Message{ID: "evt_1"}}
	require.NoError(t, dedup.NewStore(db.Schema).Register(t.Context(), db.Pool, consumer))
	b.ledger = b.newLedger(t, configure...)
	return b
}

// newLedger is that of a further process.
func (b *testBundle) newLedger(t *testing.T, configure ...func(*calls.Config)) *calls.Ledger {
	t.Helper()
	cfg := calls.Config{Schema: b.Schema}
	for _, f := range configure {
		f(&cfg)
	}
	l, err := calls.New(b.Pool, cfg)
	require.NoError(t, err)
	return l
}

// context is what the engine gives to Prepare.
func (b *testBundle) context(ctx context.Context) context.Context {
	return handler.WithCause(ctx, &handler.Cause{Consumer: consumer, Message: b.msg, MessageID: dedup.MessageID(b.msg.ID)})
}

// do makes the call as the engine would, with the provider's own function.
func (b *testBundle) do(t *testing.T, o calls.Options) ([]byte, error) {
	t.Helper()
	return b.doWith(t, b.provider.call, o)
}

func (b *testBundle) doWith(t *testing.T, call calls.Func, o calls.Options) ([]byte, error) {
	t.Helper()
	return b.ledger.Do(b.context(t.Context()), b.msg, step, call, o)
}

// result reads what the handler would.
func (b *testBundle) result(t *testing.T) (result []byte, err error) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		result, err = b.ledger.Result(b.context(t.Context()), tx, b.msg, step)
		return nil
	}))
	return result, err
}

func (b *testBundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.Pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// settled writes that the message has an outcome.
func (b *testBundle) settled(t *testing.T, outcome handler.Outcome) {
	t.Helper()
	b.exec(t, `INSERT INTO processed_messages (consumer_id, message_id, message_text, outcome) VALUES (consumer_id($1), message_id($2), $2, $3)`,
		consumer, b.msg.ID, int16(outcome))
}

// age moves all times of the calls into the past: time passes.
func (b *testBundle) age(t *testing.T, by time.Duration) {
	t.Helper()
	b.exec(t, `UPDATE calls SET lease_until = lease_until - $1::interval, deadline = deadline - $1::interval,
		sent_first_at = sent_first_at - $1::interval, created_at = created_at - $1::interval, updated_at = updated_at - $1::interval`, by)
}

// row is a call as it stands, for comparison.
type row struct {
	State      string
	Generation int
	Attempts   int
	Held       bool
	Sent       bool
}

func (b *testBundle) row(t *testing.T) (r row) {
	t.Helper()
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT call_state_name(state), generation, attempts, coalesce(lease_until > clock_timestamp(), false), sent_first_at IS NOT NULL
		FROM calls WHERE step = $1`, step).Scan(&r.State, &r.Generation, &r.Attempts, &r.Held, &r.Sent))
	return r
}

// provider does each thing once for each key, as one that has idempotency keys.
type provider struct {
	mu     sync.Mutex
	keys   []string          // of all requests, in order
	done   map[string][]byte // what it did, by key
	fails  []error           // what the next requests get; nil: the answer
	works  bool              // it does the work also where it fails
	before func()            // called before it does anything
}

func (p *provider) call(_ context.Context, key string) ([]byte, error) {
	if p.before != nil {
		p.before()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, key)
	var err error
	if len(p.fails) > 0 {
		err, p.fails = p.fails[0], p.fails[1:]
	}
	if err == nil || p.works {
		if _, again := p.done[key]; !again {
			p.done[key] = fmt.Appendf(nil, "invoice %d", len(p.done)+1)
		}
	}
	if err != nil {
		return nil, err
	}
	return p.done[key], nil
}

func (p *provider) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.keys...)
}

func (p *provider) effects() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.done)
}

var errReset = errors.New("connection reset by peer")
