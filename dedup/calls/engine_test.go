package calls_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// consumer is a process of a consumer that calls the provider and writes down what it
// said. Its first failed attempt is its last.
func (b *testBundle) consumer(t *testing.T, o calls.Options, configure ...func(*calls.Config)) *inbox.Inbox {
	t.Helper()
	ledger := b.newLedger(t, configure...)
	prepare := func(ctx context.Context, msg *handler.Message) error {
		_, err := ledger.Do(ctx, msg, step, b.provider.call, o)
		return err
	}
	in, err := inbox.New(b.Pool, consumer, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		result, err := ledger.Result(ctx, tx, msg, step)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO effects VALUES ($1)`, string(result))
		return err
	}, inbox.Config{
		Schema: b.Schema, Prepare: prepare, Retry: inbox.Retry{Attempts: 1}, QuickDelay: time.Millisecond, QuickMaxDelay: 20 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return in
}

func setupEngine(t *testing.T) *testBundle {
	t.Helper()
	b := setup(t)
	b.exec(t, `CREATE TABLE effects (result text NOT NULL)`)
	return b
}

// requireOneEffect asserts that the provider and the handler have done it once.
func (b *testBundle) requireOneEffect(t *testing.T) {
	t.Helper()
	require.Equal(t, 1, b.provider.effects(), "PROMISE BROKEN: effects at the provider")
	rows, err := b.Pool.Query(t.Context(), `SELECT result FROM effects`)
	require.NoError(t, err)
	results, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"invoice 1"}, results, "PROMISE BROKEN: effects here")
}

// A copy in another process waits for the call, spends none of its one attempt, and
// is a duplicate.
func TestEngine_CopyWaits(t *testing.T) {
	t.Parallel()

	b := setupEngine(t)
	calling, answer := make(chan struct{}), make(chan struct{})
	b.provider.before = func() {
		close(calling)
		<-answer
	}
	asked := make(chan struct{}, 1000)
	first := b.consumer(t, calls.Options{})
	second := b.consumer(t, calls.Options{}, func(cfg *calls.Config) {
		cfg.Trace = func(context.Context, calls.Point, calls.Call) { asked <- struct{}{} }
	})
	outcomes := make(chan handler.Outcome, 2)
	process := func(in *inbox.Inbox) {
		outcome, err := in.Process(context.Background(), b.msg)
		if err != nil {
			t.Error(err)
		}
		outcomes <- outcome
	}
	go process(first)
	<-calling
	go process(second)
	for range 3 { // it asks again and again
		<-asked
	}
	require.Empty(t, outcomes)
	close(answer)

	require.ElementsMatch(t, []handler.Outcome{handler.Processed, handler.Duplicate}, []handler.Outcome{<-outcomes, <-outcomes})
	b.requireOneEffect(t)
	require.Len(t, b.provider.requests(), 1)
}

// A shutdown in a call spends no attempt; the next process repeats it under its key.
func TestEngine_Shutdown(t *testing.T) {
	t.Parallel()

	b := setupEngine(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.provider.works, b.provider.fails = true, []error{context.Canceled}
	b.provider.before = cancel
	_, err := b.consumer(t, calls.Options{}).Process(ctx, b.msg)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, row{State: "started", Generation: 1, Attempts: 1, Sent: true}, b.row(t))
	b.provider.before = nil

	outcome, err := b.consumer(t, calls.Options{}).Process(t.Context(), b.msg)

	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	b.requireOneEffect(t)
	require.Len(t, b.provider.requests(), 2)
}

// Each end of a call that is for a person has its reason in the dead letter, and
// none is repeated by a replay before somebody has decided.
func TestEngine_DeadLetters(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		err    error
		o      calls.Options
		reason dlq.Reason
		state  string
	}{
		{name: "Refused", err: handler.Permanent(errReset), reason: dlq.Permanent, state: "failed"},
		{name: "Unknown", err: handler.ErrCallUnknown, reason: dlq.CallUnknown, state: "unknown"},
		{name: "AnswerLost", err: errReset, o: calls.Options{KeyTTL: -1}, reason: dlq.Exhausted, state: "started"}, // its only attempt
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setupEngine(t)
			b.provider.fails = []error{tt.err}
			in := b.consumer(t, tt.o)
			outcome, err := in.Process(t.Context(), b.msg)
			require.NoError(t, err)
			require.Equal(t, handler.Dead, outcome)
			letters, err := dlq.NewStore(b.Schema).List(t.Context(), b.Pool, dlq.Filter{})
			require.NoError(t, err)
			require.Len(t, letters, 1)
			require.Equal(t, tt.reason, letters[0].Reason)
			require.Equal(t, tt.state, b.row(t).State)
		})
	}
}
