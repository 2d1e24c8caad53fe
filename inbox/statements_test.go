package inbox_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// Case P1: what finds the messages that kill their process must cost the others
// nothing (pg-transactional-outbox; DBOS). All that goes to the server is counted,
// on the wire: for the same messages in a consumer that has no suspect, and in one
// in which a suspect is under way, noted in the journal, all the time.
func TestStatements_JournalCostsHealthyMessagesNothing(t *testing.T) {
	t.Parallel()

	const n = 100
	handle := func(t *testing.T, in *inbox.Inbox) {
		t.Helper()
		for i := range n {
			outcome, err := in.Process(t.Context(), keyed(fmt.Sprint("evt_", i), fmt.Sprint(i%10)))
			require.NoError(t, err)
			require.Equal(t, handler.Processed, outcome)
		}
	}
	began, release := make(chan struct{}, 1), make(chan struct{})
	h := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if msg.Origin.Redelivered {
			began <- struct{}{}
			<-release
		}
		return effect(ctx, tx, msg)
	}
	suspect := message("suspect")
	suspect.Origin.Redelivered = true

	without, with := setup(t), setup(t)
	pool, statements := without.statementPool(t)
	in := without.inboxOn(t, pool, "shipping", h, inbox.Config{})
	_, err := in.Process(t.Context(), keyed("first", "k")) // the start checks
	require.NoError(t, err)
	statements.Store(0)
	handle(t, in)
	healthy := statements.Load()

	pool, statements = with.statementPool(t)
	in = with.inboxOn(t, pool, "shipping", h, inbox.Config{})
	_, err = in.Process(t.Context(), keyed("first", "k"))
	require.NoError(t, err)
	statements.Store(0)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := in.Process(t.Context(), suspect)
		require.NoError(t, err)
	})
	<-began
	require.Equal(t, 1, with.count(t, `SELECT count(*) FROM attempt_journal`), "it is noted")
	ofSuspect := statements.Swap(0)
	handle(t, in)
	withJournal := statements.Swap(0)
	require.Equal(t, 1, with.count(t, `SELECT count(*) FROM attempt_journal`), "as it was all the time")
	close(release)
	wg.Wait()
	ofSuspect += statements.Load()

	fmt.Printf("statements healthy=%d with_journal=%d\n", healthy, withJournal)
	t.Logf("statements of each healthy message: %d, of a suspect: %d", healthy/n, ofSuspect)
	require.Equal(t, healthy, withJournal)
	require.Zero(t, healthy%n, "each costs the same")
	require.Equal(t, healthy/n+4, ofSuspect, "a look at its row and one at the journal, and what is written there and taken back")
}

// A worker's messages cost no statement about the journal either, nor do those of
// a source, whatever becomes of them.
func TestStatements_NoneAboutTheJournal(t *testing.T) {
	t.Parallel()

	for _, ordering := range []inbox.Ordering{inbox.PerKey, inbox.Strict, inbox.ViaInbox} {
		t.Run(ordering.String(), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			config, err := pgxpool.ParseConfig(b.URL)
			require.NoError(t, err)
			sent := &journalStatements{}
			config.ConnConfig.Tracer = sent
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			in := b.inboxOn(t, pool, "shipping", func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				if strings.HasPrefix(msg.ID, "failing") {
					return fmt.Errorf("%s is failing", msg.ID)
				}
				return effect(ctx, tx, msg)
			}, inbox.Config{Ordering: ordering, QuickAttempts: 1, Retry: retries})

			stop := works(t, in)
			for i := range 10 {
				_, err := in.Process(t.Context(), keyed(fmt.Sprint("evt_", i), fmt.Sprint(i%3)))
				require.NoError(t, err)
				_, err = in.Store(t.Context(), keyed(fmt.Sprint("stored_", i), fmt.Sprint(i%3)))
				require.NoError(t, err)
			}
			_, err = in.Process(t.Context(), message("failing"))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return len(b.letters(t)) == 1 && b.inboxRows(t) == 0 }, deadline, tick)
			stop()
			require.Equal(t, 20, b.count(t, `SELECT count(*) FROM effects`))
			require.Greater(t, sent.all.Load(), int64(60))
			require.Zero(t, sent.journal.Load())

			suspect := message("suspect")
			suspect.Origin.Redelivered = true
			if ordering != inbox.ViaInbox { // there it is only stored
				_, err = in.Process(t.Context(), suspect)
				require.NoError(t, err)
				require.Positive(t, sent.journal.Load(), "they would have been seen")
			}
		})
	}
}

// journalStatements counts statements, and those about the journal.
type journalStatements struct{ all, journal atomic.Int64 }

func (j *journalStatements) see(sql string) {
	j.all.Add(1)
	if strings.Contains(sql, "attempt_journal") {
		j.journal.Add(1)
	}
}

func (j *journalStatements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	j.see(data.SQL)
	return ctx
}

func (j *journalStatements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (j *journalStatements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (j *journalStatements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	j.see(data.SQL)
}

func (j *journalStatements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// statementPool is a pool that counts the statements it has the server execute.
func (b *testBundle) statementPool(t *testing.T) (*pgxpool.Pool, *atomic.Int64) {
	t.Helper()
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	statements := new(atomic.Int64)
	config.MaxConns = 6
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &statementConn{Conn: conn, statements: statements}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool, statements
}

// statementConn reads what a client sends, message by message, and counts those
// that execute something.
type statementConn struct {
	net.Conn
	statements *atomic.Int64
	started    bool   // the startup message, which has no type, is over
	rest       []byte // the beginning of a message that is not all there
}

// Write implements [net.Conn].
func (c *statementConn) Write(b []byte) (int, error) {
	c.rest = append(c.rest, b...)
	for {
		kind, head := byte(0), 0
		if c.started {
			head = 1
		}
		if len(c.rest) < head+4 {
			break
		}
		if c.started {
			kind = c.rest[0]
		}
		size := head + int(binary.BigEndian.Uint32(c.rest[head:]))
		if len(c.rest) < size {
			break
		}
		c.rest, c.started = c.rest[size:], true
		if kind == 'E' || kind == 'Q' { // Execute, Query
			c.statements.Add(1)
		}
	}
	return c.Conn.Write(b)
}
