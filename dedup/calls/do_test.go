package calls_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
)

func TestDo(t *testing.T) {
	t.Parallel()

	b := setup(t)

	result, err := b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, "invoice 1", string(result))
	require.Equal(t, row{State: "done", Generation: 1, Attempts: 1, Sent: true}, b.row(t))

	result, err = b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, "invoice 1", string(result))
	require.Len(t, b.provider.requests(), 1)

	result, err = b.result(t)
	require.NoError(t, err)
	require.Equal(t, "invoice 1", string(result))
}

// Nothing, and nothing in particular, are two results.
func TestDo_NilAndEmpty(t *testing.T) {
	t.Parallel()

	for name, want := range map[string][]byte{"Nil": nil, "Empty": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			_, err := b.doWith(t, func(context.Context, string) ([]byte, error) { return want, nil }, calls.Options{})
			require.NoError(t, err)

			again, err := b.do(t, calls.Options{})
			require.NoError(t, err)
			read, err := b.result(t)
			require.NoError(t, err)

			require.Equal(t, want, again)
			require.Equal(t, want, read)
			require.Empty(t, b.provider.requests())
		})
	}
}

// countingTracer counts the statements of a pool.
type countingTracer struct{ n atomic.Int64 }

func (c *countingTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (*countingTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A call costs two statements, each a round trip; what is done already costs one.
func TestDo_Statements(t *testing.T) {
	t.Parallel()

	b := setup(t)
	tracer := &countingTracer{}
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	b.ledger, err = calls.New(pool, calls.Config{Schema: b.Schema})
	require.NoError(t, err)

	_, err = b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, int64(2), tracer.n.Swap(0))

	_, err = b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, int64(1), tracer.n.Load())
}

// The intent is there for everybody to see before the provider is called.
func TestDo_IntentFirst(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var during []row
	look := func(ctx context.Context, key string) ([]byte, error) {
		var n int
		require.NoError(t, b.Pool.QueryRow(ctx, `SELECT count(*) FROM calls WHERE idempotency_key = $1`, key).Scan(&n))
		if n == 1 {
			during = append(during, b.row(t))
		}
		return nil, errReset
	}

	for range 2 {
		_, err := b.doWith(t, look, calls.Options{})
		require.ErrorIs(t, err, errReset)
	}

	require.Equal(t, []row{
		{State: "started", Generation: 1, Attempts: 1, Held: true, Sent: true},
		{State: "started", Generation: 1, Attempts: 2, Held: true, Sent: true},
	}, during)
}

// A provider works, and its answer is lost: the repetition has the same key.
func TestDo_AnswerLost(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.provider.fails, b.provider.works = []error{errReset}, true

	_, err := b.do(t, calls.Options{})
	require.ErrorIs(t, err, errReset)
	require.ErrorContains(t, err, "whose end is unknown now")
	require.False(t, handler.IsPermanent(err) || handler.IsInFlight(err) || handler.IsOutage(err))
	require.Equal(t, row{State: "started", Generation: 1, Attempts: 1, Sent: true}, b.row(t))

	result, err := b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, "invoice 1", string(result))
	keys := b.provider.requests()
	require.Len(t, keys, 2)
	require.Equal(t, keys[0], keys[1])
	require.Equal(t, 1, b.provider.effects())
}

// What the provider refuses is a failure that is known; when the message is tried
// again after that it is another call.
func TestDo_Refused(t *testing.T) {
	t.Parallel()

	b := setup(t)
	refusal := handler.Permanent(errors.New("422: no such customer"))
	b.provider.fails = []error{refusal, errReset}

	_, err := b.do(t, calls.Options{})
	require.ErrorIs(t, err, refusal)
	require.Equal(t, row{State: "failed", Generation: 1, Attempts: 1, Sent: true}, b.row(t))
	_, err = b.result(t)
	require.ErrorIs(t, err, calls.ErrNotDone)
	require.ErrorContains(t, err, "it is failed")

	_, err = b.do(t, calls.Options{})
	require.ErrorIs(t, err, errReset)
	require.Equal(t, row{State: "started", Generation: 2, Attempts: 2, Sent: true}, b.row(t))
	_, err = b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, row{State: "done", Generation: 2, Attempts: 3, Sent: true}, b.row(t))

	keys := b.provider.requests()
	require.NotEqual(t, keys[0], keys[1])
	require.Equal(t, keys[1], keys[2])
}

// unsent is the error of a breaker: the provider has seen nothing.
type unsent struct{ error }

func (unsent) NotSent() bool { return true }

func TestDo_NotSent(t *testing.T) {
	t.Parallel()

	b := setup(t)
	open := unsent{errors.New("breaker is open")}
	none := calls.Options{KeyTTL: -1} // a person would be asked next if anything had been sent

	b.provider.fails = []error{fmt.Errorf("call provider: %w", open)}
	_, err := b.do(t, none)
	require.ErrorIs(t, err, open)
	require.Equal(t, row{State: "ready", Generation: 1, Attempts: 1}, b.row(t))

	b.provider.fails = []error{errReset}
	_, err = b.do(t, none)
	require.ErrorIs(t, err, errReset)
	require.Equal(t, row{State: "started", Generation: 1, Attempts: 2, Sent: true}, b.row(t))

	// The attempt before may have been seen: that this one was not changes nothing.
	b.provider.fails = []error{open}
	_, err = b.do(t, calls.Options{})
	require.ErrorIs(t, err, open)
	require.Equal(t, row{State: "started", Generation: 1, Attempts: 3, Sent: true}, b.row(t))
	_, err = b.do(t, none)
	require.ErrorIs(t, err, handler.ErrCallUnknown)
}

// A refusal begins a generation; what was not sent in it leaves it at that.
func TestDo_NotSentAfterRefusal(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.provider.fails = []error{handler.Permanent(errReset), unsent{errReset}, nil}
	for range 2 {
		_, err := b.do(t, calls.Options{KeyTTL: -1})
		require.Error(t, err)
	}
	require.Equal(t, row{State: "ready", Generation: 2, Attempts: 2}, b.row(t))

	_, err := b.do(t, calls.Options{KeyTTL: -1})

	require.NoError(t, err)
	keys := b.provider.requests()
	require.NotEqual(t, keys[0], keys[1])
	require.Equal(t, keys[1], keys[2])
}

// A message that is settled makes no call, whoever settled it.
func TestDo_Settled(t *testing.T) {
	t.Parallel()

	tests := []struct {
		outcome handler.Outcome
		calls   bool
	}{
		{outcome: handler.Processed},
		{outcome: handler.Superseded},
		{outcome: handler.Skipped},
		{outcome: handler.Stored, calls: true},
		{outcome: handler.Dead, calls: true},
	}
	for _, tt := range tests {
		t.Run(tt.outcome.String(), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.settled(t, tt.outcome)
			_, err := b.do(t, calls.Options{})
			if tt.calls {
				require.NoError(t, err)
				require.Len(t, b.provider.requests(), 1)
				return
			}
			require.ErrorIs(t, err, calls.ErrSettled)
			require.True(t, handler.IsInFlight(err))
			require.Empty(t, b.provider.requests())
		})
	}

	t.Run("WithResult", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		_, err := b.do(t, calls.Options{})
		require.NoError(t, err)
		b.settled(t, handler.Processed)
		result, err := b.do(t, calls.Options{})
		require.NoError(t, err)
		require.Equal(t, "invoice 1", string(result))
		require.Len(t, b.provider.requests(), 1)
	})
	t.Run("AfterAnUnknownEnd", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		b.provider.fails = []error{errReset}
		_, err := b.do(t, calls.Options{})
		require.ErrorIs(t, err, errReset)
		b.settled(t, handler.Skipped)
		_, err = b.do(t, calls.Options{})
		require.ErrorIs(t, err, calls.ErrSettled)
		require.Len(t, b.provider.requests(), 1)
	})
}

// A call that does not return leaves its intent behind, and lets go of it.
func TestDo_PanicAndGoexit(t *testing.T) {
	t.Parallel()

	for name, end := range map[string]func(){"Panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			done := make(chan any)
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_, _ = b.doWith(t, func(context.Context, string) ([]byte, error) {
					end()
					return nil, nil
				}, calls.Options{})
			}()
			<-done

			require.Equal(t, row{State: "started", Generation: 1, Attempts: 1, Sent: true}, b.row(t))
			_, err := b.do(t, calls.Options{})
			require.NoError(t, err)
		})
	}
}

func TestDo_Timeout(t *testing.T) {
	t.Parallel()

	b := setup(t)
	slow := func(ctx context.Context, _ string) ([]byte, error) {
		<-ctx.Done()
		require.Equal(t, calls.ErrTimeout, context.Cause(ctx))
		return nil, ctx.Err()
	}

	_, err := b.doWith(t, slow, calls.Options{Timeout: 2 * time.Second})

	require.ErrorIs(t, err, calls.ErrTimeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, row{State: "started", Generation: 1, Attempts: 1, Sent: true}, b.row(t))
	var noted string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT error FROM calls`).Scan(&noted))
	require.Contains(t, noted, calls.ErrTimeout.Error())
	require.NotContains(t, noted, step, "what call it is stands beside it")
}

// Our own cancellation says nothing about what the provider did.
func TestDo_Cancelled(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.ledger.Do(b.context(ctx), b.msg, step, func(ctx context.Context, _ string) ([]byte, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}, calls.Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, row{State: "started", Generation: 1, Attempts: 1, Sent: true}, b.row(t), "unknown, and in nobody's hand")

	// One whose context has ended already sends nothing and writes nothing.
	b.msg = &handler.Message{ID: "evt_2"}
	_, err = b.ledger.Do(b.context(ctx), b.msg, step, b.provider.call, calls.Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, b.provider.requests())
}

// The call is done: that is never repeated because its result does not fit.
func TestDo_TooLarge(t *testing.T) {
	t.Parallel()

	b := setup(t, func(cfg *calls.Config) { cfg.MaxResult, cfg.Logger = 10, slog.New(slog.DiscardHandler) })
	var times int
	large := func(context.Context, string) ([]byte, error) {
		times++
		return []byte(strings.Repeat("secret ", 2)), nil
	}
	for range 2 {
		_, err := b.doWith(t, large, calls.Options{})
		require.ErrorIs(t, err, calls.ErrNotKept)
		require.True(t, handler.IsPermanent(err))
		require.ErrorContains(t, err, "it has 14 bytes, at most 10 are allowed")
		require.NotContains(t, err.Error(), "secret")
	}
	require.Equal(t, 1, times)
	_, err := b.result(t)
	require.ErrorIs(t, err, calls.ErrNotKept)
	require.Equal(t, row{State: "done", Generation: 1, Attempts: 1, Sent: true}, b.row(t))
}

func TestDo_StepsAndMessagesAreApart(t *testing.T) {
	t.Parallel()

	b := setup(t)
	other := handler.WithCause(t.Context(), &handler.Cause{Consumer: "shipping", Message: b.msg})
	do := func(ctx context.Context, msg *handler.Message, step string) string {
		result, err := b.ledger.Do(ctx, msg, step, b.provider.call, calls.Options{})
		require.NoError(t, err)
		return string(result)
	}

	require.Equal(t, "invoice 1", do(b.context(t.Context()), b.msg, step))
	require.Equal(t, "invoice 2", do(b.context(t.Context()), b.msg, "send-mail"))
	require.Equal(t, "invoice 3", do(other, b.msg, step))
	b.msg = &handler.Message{ID: "evt_2"}
	require.Equal(t, "invoice 4", do(b.context(t.Context()), b.msg, step))
	require.Len(t, b.provider.requests(), 4)
}

// The id that the engine claimed counts, also where the message has none.
func TestDo_ClaimedUnderAnotherID(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.msg = &handler.Message{ID: "bad\x00id"}
	cause := &handler.Cause{Consumer: consumer, Message: b.msg, MessageID: dedup.HashID([]byte("surrogate"))}

	_, err := b.ledger.Do(handler.WithCause(t.Context(), cause), b.msg, step, b.provider.call, calls.Options{})

	require.NoError(t, err)
	var id dedup.ID
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT message_id FROM calls WHERE message_text IS NULL`).Scan(&id))
	require.Equal(t, dedup.ID(cause.MessageID), id)
}

func TestDo_Refusals(t *testing.T) {
	t.Parallel()

	b := setup(t, func(cfg *calls.Config) { cfg.Lease = 20 * time.Second })
	ask := func(context.Context, calls.Call) ([]byte, calls.Answer, error) { return nil, calls.No, nil }
	tests := []struct {
		name string
		step string
		o    calls.Options
		want string
	}{
		{name: "NoStep", want: "a step needs a name"},
		{name: "BlankStep", step: " ", want: "a step needs a name"},
		{name: "LongStep", step: strings.Repeat("x", 256), want: "has 256 bytes, at most 255 are allowed"},
		{name: "StepNoText", step: "a\x00", want: "must be UTF-8 without NUL"},
		{name: "NegativeTimeout", step: step, o: calls.Options{Timeout: -1}, want: "it must be positive"},
		{name: "LongerThanTheLease", step: step, o: calls.Options{Timeout: 16 * time.Second}, want: "its timeout 16s and the grace 5s are longer than the lease 20s"},
		{name: "KeysForgottenAtOnce", step: step, o: calls.Options{KeyTTL: 15 * time.Second}, want: "the provider remembers keys for 15s, which is no longer than one call may take, 15s"},
		{name: "AskFirstWithNothing", step: step, o: calls.Options{AskFirst: true}, want: "nothing is given to ask with"},
		{name: "EmptyKey", step: step, o: calls.Options{WasItDone: ask, Key: func(calls.Call) string { return "" }}, want: "it must have 1 to 255"},
		{name: "LongKey", step: step, o: calls.Options{Key: func(calls.Call) string { return strings.Repeat("k", 256) }}, want: "it must have 1 to 255"},
		{name: "KeyWithLineEnd", step: step, o: calls.Options{Key: func(calls.Call) string { return "a\nb" }}, want: "character 2 of its idempotency key is not printable ASCII"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := b.ledger.Do(b.context(t.Context()), b.msg, tt.step, b.provider.call, tt.o)
			require.ErrorContains(t, err, tt.want)
		})
	}
	t.Run("NoCause", func(t *testing.T) {
		t.Parallel()

		_, err := b.ledger.Do(t.Context(), b.msg, step, b.provider.call, calls.Options{})
		require.ErrorContains(t, err, "its context is not that of a consumer's Prepare")
	})
	t.Run("Nothing", func(t *testing.T) {
		t.Parallel()
		require.NoError(t, b.ledger.Check(step, calls.Options{Timeout: 15 * time.Second}))
	})
	t.Cleanup(func() { require.Empty(t, b.provider.requests()) })
}

func TestNew_Refused(t *testing.T) {
	t.Parallel()

	_, err := calls.New(nil, calls.Config{Schema: strings.Repeat("x", 64), Lease: -1, Grace: -1, StatementTimeout: -1, MaxResult: -1})
	for _, field := range []string{"pool is nil", "64 bytes", "Lease is", "Grace is", "StatementTimeout is", "MaxResult is -1"} {
		require.ErrorContains(t, err, field)
	}
}

// A database that is away is an outage and not a failure of the message.
func TestDo_Outage(t *testing.T) {
	t.Parallel()

	b := setup(t)
	away := b.NewPool(t, 1)
	away.Close()
	ledger, err := calls.New(away, calls.Config{Schema: b.Schema})
	require.NoError(t, err)

	_, err = ledger.Do(b.context(t.Context()), b.msg, step, b.provider.call, calls.Options{})

	require.True(t, handler.IsOutage(err))
	require.Empty(t, b.provider.requests())
}

// The database is away when the answer is there: it is written when it is back.
func TestDo_ResultIsTriedAgain(t *testing.T) {
	t.Parallel()

	b := setup(t)
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	var refuse atomic.Bool
	var refused atomic.Int64
	config.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) {
		if refuse.Load() && refused.Add(1) <= 2 {
			return true, errors.New("the pool says no")
		}
		return true, nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	b.ledger, err = calls.New(pool, calls.Config{Schema: b.Schema, Grace: time.Minute})
	require.NoError(t, err)

	result, err := b.doWith(t, func(ctx context.Context, key string) ([]byte, error) {
		refuse.Store(true)
		return b.provider.call(ctx, key)
	}, calls.Options{})

	require.NoError(t, err)
	require.Equal(t, "invoice 1", string(result))
	require.Equal(t, int64(3), refused.Load())
	require.Equal(t, "done", b.row(t).State)
}
