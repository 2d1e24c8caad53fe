package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

const modelConsumer = "modelled"

// world is where the model's messages are handled in earnest.
type world struct {
	*testBundle
	ordering inbox.Ordering
	born     int            // processes
	effects  map[string]int // of each message

	mu    sync.Mutex // guards fates
	fates map[string]*worldFate
}

// worldFate is the fate of a message, and how it fails.
type worldFate struct {
	fate
	way string
}

// The ways in which an attempt fails. All of them leave an effect first.
const (
	withError     = "an error"
	withPanic     = "a panic"
	brokenInside  = "a failed statement that is passed over"
	connectionCut = "the end of its connection"
)

var errModel = errors.New("no")

func newWorld(t *testing.T, ordering inbox.Ordering) *world {
	t.Helper()
	w := &world{testBundle: setup(t), ordering: ordering}
	w.exec(t, `CREATE TABLE took (n bigint GENERATED ALWAYS AS IDENTITY, name text NOT NULL)`)
	return w
}

// reset empties the world.
func (w *world) reset(t *rapid.T) {
	w.fates, w.effects = make(map[string]*worldFate), make(map[string]int)
	for _, table := range []string{"took", "processed_messages", "inbox_messages", "dead_letters", "attempt_journal"} {
		w.do(t, `DELETE FROM `+table)
	}
}

func (w *world) do(t *rapid.T, sql string, args ...any) {
	_, err := w.Pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// process is one that handles messages, and may die.
type process struct {
	*inbox.Inbox
	w    *world
	name string
	pool *pgxpool.Pool
	ctx  context.Context // its life

	mu    sync.Mutex // guards what follows
	end   context.CancelFunc
	conns []net.Conn
	dead  bool
	point inbox.EventKind // where it is to die; 0: nowhere
	with  string          // the message; empty: any
}

// start starts a process.
func (w *world) start(t *rapid.T) *process {
	w.born++
	p := &process{w: w, name: fmt.Sprintf("%s_%d", w.Schema, w.born)}
	p.ctx, p.end = context.WithCancel(context.Background())
	config, err := pgxpool.ParseConfig(w.URL)
	require.NoError(t, err)
	config.MaxConns = 4
	config.ConnConfig.RuntimeParams["application_name"] = p.name
	config.ConnConfig.DialFunc = p.dial
	p.pool, err = pgxpool.NewWithConfig(context.Background(), config)
	require.NoError(t, err)
	p.Inbox, err = inbox.New(p.pool, modelConsumer, p.handle, inbox.Config{
		Schema: w.Schema, Ordering: w.ordering, Observer: p, Logger: slog.New(slog.DiscardHandler),
		QuickAttempts: modelQuick, QuickDelay: time.Millisecond, QuickMaxDelay: time.Millisecond,
		Retry:          inbox.Retry{Attempts: modelInAll, Delay: time.Millisecond, MaxDelay: time.Millisecond},
		OutageMaxDelay: 10 * time.Millisecond,
	})
	require.NoError(t, err)
	return p
}

// stop ends the process in order, or clears away what is left of a dead one: its
// transactions end when the server has noticed.
func (p *process) stop(t *rapid.T) {
	p.end()
	p.pool.Close()
	require.Eventually(t, func() bool {
		var sessions int
		err := p.w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1`, p.name).Scan(&sessions)
		return err == nil && sessions == 0
	}, time.Minute, tick, "a process is gone, its sessions are not")
}

func (p *process) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		_ = conn.Close()
		return nil, errors.New("the process is dead")
	}
	p.conns = append(p.conns, conn)
	return conn, nil
}

// dies makes the process die when it comes to a point, with a message or any.
func (p *process) dies(point inbox.EventKind, with string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.point, p.with = point, with
}

// Observe implements [inbox.Observer].
func (p *process) Observe(_ context.Context, e inbox.Event) {
	if e.Kind == inbox.Claimed {
		return // it dies in the handler
	}
	name := ""
	if e.Message != nil {
		name = string(e.Message.Payload)
	}
	p.pass(e.Kind, name)
}

// pass comes to a point, and reports whether the process is dead. From then on it
// says nothing to the database.
func (p *process) pass(point inbox.EventKind, name string) (dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead && p.point == point && p.with == name {
		p.dead = true
		for _, conn := range p.conns {
			_ = conn.Close()
		}
		p.end()
	}
	return p.dead
}

// diedAt is the point at which the process died. 0: it has not come to it.
func (p *process) diedAt() inbox.EventKind {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		return 0
	}
	return p.point
}

func (p *process) died() bool { return p.diedAt() != 0 }

// handle leaves an effect, and then does what the message's fate is.
func (p *process) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	name := string(msg.Payload)
	if _, err := tx.Exec(ctx, `INSERT INTO took (name) VALUES ($1)`, name); err != nil {
		return err
	}
	if p.pass(inbox.Claimed, name) {
		return errModel
	}
	sickness, way := p.w.attempt(name)
	switch {
	case sickness == "":
		return nil
	case sickness == incurable:
		return handler.Permanent(errModel)
	case way == withPanic:
		panic(errModel)
	case way == brokenInside:
		_, _ = tx.Exec(ctx, `SELECT 1/0`)
		return nil
	case way == connectionCut:
		_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
		return err
	default:
		return errModel
	}
}

// attempt is how an attempt of the message fails.
func (w *world) attempt(name string) (s sickness, way string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.fates[name]
	if f.unmended == "" && f.failures == 0 {
		return "", ""
	}
	f.failures = max(f.failures-1, 0)
	if f.unmended == incurable {
		return incurable, f.way
	}
	return relapsing, f.way
}

// said is a text as it stands when a test has failed.
type said struct{ text *string }

func (s *said) String() string { return *s.text }

// work handles what is in the inbox until nothing is ready, or the process dies.
// Leases that a dead process left are over.
func (p *process) work(t *rapid.T, beside func()) {
	p.w.do(t, `UPDATE inbox_messages SET ready_at = clock_timestamp() WHERE lease_owner IS NOT NULL`)
	ctx, cancel := context.WithCancel(p.ctx)
	done := make(chan error, 1)
	go func() { done <- p.Work(ctx) }()
	beside()
	var waiting string
	require.Eventually(t, func() bool {
		err := p.w.Pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(message || ' ' || state || ' ' || ready_at || coalesce(errors::text, ''), ', '), '')
			FROM stored WHERE ready_at IS NOT NULL`).Scan(&waiting)
		return p.died() || err == nil && waiting == ""
	}, time.Minute, tick, "the inbox is not worked off: %s", &said{&waiting})
	cancel()
	err := <-done
	require.True(t, err == nil || p.died(), err)
}
