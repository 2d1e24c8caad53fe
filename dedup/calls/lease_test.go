package calls_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
)

// outcome is what a Do in another goroutine comes to.
type outcome struct {
	result []byte
	err    error
}

// frozen begins a call that answers once thaw is called, and not before: its
// process stands still.
func (b *testBundle) frozen(t *testing.T, o calls.Options, result []byte, err error) (thaw func() outcome) {
	t.Helper()
	sent, answers, done := make(chan struct{}), make(chan struct{}), make(chan outcome, 1)
	go func() {
		result, err := b.ledger.Do(b.context(context.Background()), b.msg, step, func(context.Context, string) ([]byte, error) {
			close(sent)
			<-answers
			return result, err
		}, o)
		done <- outcome{result, err}
	}()
	select {
	case <-sent:
	case <-time.After(time.Minute):
		t.Fatal("the call was not sent")
	}
	return func() outcome {
		close(answers)
		return <-done
	}
}

func TestLease_InHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	thaw := b.frozen(t, calls.Options{}, []byte("invoice 7"), nil)

	_, err := b.do(t, calls.Options{})
	require.ErrorIs(t, err, calls.ErrInHand)
	require.True(t, handler.IsInFlight(err))

	require.NoError(t, thaw().err)
	result, err := b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, "invoice 7", string(result))
	require.Empty(t, b.provider.requests())
}

// Many copies in several processes: one calls.
func TestLease_ManyAtOnce(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var made atomic.Int64
	once := func(context.Context, string) ([]byte, error) {
		made.Add(1)
		return []byte("invoice 7"), nil
	}
	ledgers := []*calls.Ledger{b.ledger, b.newLedger(t), b.newLedger(t)}
	var waiting sync.WaitGroup
	results := make([]outcome, 30)
	for i := range results {
		waiting.Go(func() {
			for {
				r, err := ledgers[i%len(ledgers)].Do(b.context(context.Background()), b.msg, step, once, calls.Options{KeyTTL: -1})
				if results[i] = (outcome{r, err}); !handler.IsInFlight(err) {
					return
				}
			}
		})
	}
	waiting.Wait()
	for _, r := range results {
		require.NoError(t, r.err)
		require.Equal(t, "invoice 7", string(r.result))
	}
	require.Equal(t, int64(1), made.Load())
}

// A crash leaves the intent and its lease: nobody comes near before that is over.
func TestLease_AfterACrash(t *testing.T) {
	t.Parallel()

	b := setup(t, func(cfg *calls.Config) { cfg.Lease = time.Minute })
	thaw := b.frozen(t, calls.Options{}, nil, errReset) // never heard of again, before the end of this test
	defer thaw()

	b.age(t, 59*time.Second)
	_, err := b.do(t, calls.Options{})
	require.ErrorIs(t, err, calls.ErrInHand)
	b.age(t, time.Second)
	_, err = b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, row{State: "done", Generation: 1, Attempts: 2, Sent: true}, b.row(t))
}

// The lease of a process that stands still is taken over; then both get their answer.
func TestLease_LateOwner(t *testing.T) {
	t.Parallel()

	done := func(b *testBundle) calls.Func { return b.provider.call }
	tests := []struct {
		name   string
		next   func(b *testBundle) calls.Func // what the new owner's call does, before the late answer
		result []byte                         // the late answer
		err    error
		want   string // what the late owner returns
		is     error
		state  string
	}{
		{name: "BothDone", next: done, result: []byte("late"), want: "invoice 1", state: "done"}, // one result for both
		{name: "LateDone", next: fails(errReset), result: []byte("late"), want: "late", state: "done"},
		{name: "LateDoneAfterAPerson", next: fails(handler.ErrCallUnknown), result: []byte("late"), want: "late", state: "done"},
		{name: "LateRefusal", next: done, err: handler.Permanent(errReset), is: calls.ErrInHand, state: "done"},
		{name: "LateRefusalOfUnknown", next: fails(errReset), err: handler.Permanent(errReset), is: calls.ErrInHand, state: "started"},
		{name: "LateUnknown", next: done, err: handler.ErrCallUnknown, is: calls.ErrInHand, state: "done"},
		{name: "LateError", next: done, err: errReset, is: errReset, state: "done"},
		{name: "LateDoneAfterARefusal", next: fails(handler.Permanent(errReset)), result: []byte("late"), want: "late", state: "done"}, // it was done after all
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t, func(cfg *calls.Config) { cfg.Logger = slog.New(slog.DiscardHandler) })
			thaw := b.frozen(t, calls.Options{}, tt.result, tt.err)
			b.age(t, callTime)
			_, _ = b.doWith(t, tt.next(b), calls.Options{})

			late := thaw()

			require.Equal(t, tt.state, b.row(t).State)
			if tt.is != nil {
				require.ErrorIs(t, late.err, tt.is)
				require.False(t, handler.IsPermanent(late.err), "what came of the message is not for a late owner to say")
				return
			}
			require.NoError(t, late.err)
			require.Equal(t, tt.want, string(late.result))
			result, err := b.result(t)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(result))
		})
	}
}

func fails(err error) func(*testBundle) calls.Func {
	return func(*testBundle) calls.Func {
		return func(context.Context, string) ([]byte, error) { return nil, err }
	}
}

// The new owner's call is under way when the late answer comes: it is true for both.
func TestLease_LateAnswerDuringTheNextCall(t *testing.T) {
	t.Parallel()

	b := setup(t)
	thaw := b.frozen(t, calls.Options{}, []byte("late"), nil)
	b.age(t, callTime)
	thawNext := b.frozen(t, calls.Options{}, []byte("next"), nil)

	require.Equal(t, outcome{result: []byte("late")}, thaw())
	require.Equal(t, outcome{result: []byte("late")}, thawNext())
}

// What a person decided stands, whatever a late owner says; it is not lost either.
func TestLease_APersonWins(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		r     calls.Resolution
		late  []byte
		err   error
		want  string
		state string
	}{
		{name: "Done", r: calls.Resolution{Decision: calls.WasDone, Result: []byte("person's")}, late: []byte("late"), want: "person's", state: "done"},
		{name: "NotDone", r: calls.Resolution{Decision: calls.NotDone}, late: []byte("late"), state: "failed"},
		{name: "Retry", r: calls.Resolution{Decision: calls.Retry}, late: []byte("late"), want: "late", state: "done"}, // needs no more
		{name: "DoneRefused", r: calls.Resolution{Decision: calls.WasDone}, err: handler.Permanent(errReset), state: "done"},
		{name: "RetryRefused", r: calls.Resolution{Decision: calls.Retry}, err: handler.Permanent(errReset), state: "ready"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t, func(cfg *calls.Config) { cfg.Logger = slog.New(slog.DiscardHandler) })
			thaw := b.frozen(t, calls.Options{}, tt.late, tt.err)
			require.Empty(t, b.resolve(t, tt.r), "it is under way")
			b.age(t, callTime)
			require.Len(t, b.resolve(t, tt.r), 1)

			late := thaw()

			require.Equal(t, tt.state, b.row(t).State)
			if tt.want == "" {
				require.True(t, handler.IsInFlight(late.err))
				require.False(t, handler.IsPermanent(late.err))
				return
			}
			require.NoError(t, late.err)
			require.Equal(t, tt.want, string(late.result))
		})
	}
}

// A process that stood still between its intent and its call sends nothing: another
// one may have taken over.
func TestLease_StoodStillBeforeTheCall(t *testing.T) {
	t.Parallel()

	stops := func(cfg *calls.Config) {
		cfg.Trace = func(_ context.Context, p calls.Point, _ calls.Call) {
			for began := time.Now(); p == calls.BeforeCall && time.Since(began) < 20*time.Millisecond; {
				<-time.After(time.Millisecond)
			}
		}
	}
	b := setup(t, stops)

	_, err := b.do(t, calls.Options{Timeout: 10 * time.Millisecond})

	require.True(t, handler.IsInFlight(err))
	require.ErrorContains(t, err, "this process stood still for")
	require.Empty(t, b.provider.requests())
	require.Equal(t, row{State: "ready", Generation: 1, Attempts: 1}, b.row(t))
}

// One that stood still before its intent, so long that the provider has forgotten the
// key, repeats nothing under it, also if nobody has taken over.
func TestLease_StoodStillBeforeTheIntent(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.lost(t, calls.Options{})
	intents := 0
	b.ledger = b.newLedger(t, func(cfg *calls.Config) {
		cfg.Trace = func(_ context.Context, p calls.Point, _ calls.Call) {
			if p != calls.BeforeIntent {
				return
			}
			if intents++; intents == 2 { // it has the call in hand
				b.age(t, 25*hour)
			}
		}
	})

	_, err := b.do(t, calls.Options{})

	require.ErrorIs(t, err, calls.ErrInHand)
	require.Len(t, b.provider.requests(), 1)
	_, err = b.do(t, calls.Options{})
	require.ErrorIs(t, err, handler.ErrCallUnknown)
	require.Len(t, b.provider.requests(), 1)
}

// The same while it asks.
func TestLease_LostWhileAsking(t *testing.T) {
	t.Parallel()

	b := setup(t)
	asking, answers := make(chan struct{}), make(chan struct{})
	slow := calls.Options{KeyTTL: -1, WasItDone: func(context.Context, calls.Call) ([]byte, calls.Answer, error) {
		close(asking)
		<-answers
		return nil, calls.No, nil
	}}
	b.lost(t, slow)
	b.age(t, callTime)
	done := make(chan outcome, 1)
	go func() {
		result, err := b.ledger.Do(b.context(context.Background()), b.msg, step, b.provider.call, slow)
		done <- outcome{result, err}
	}()
	<-asking
	b.age(t, callTime)
	_, err := b.do(t, calls.Options{KeyTTL: -1, WasItDone: (&lookup{answer: calls.No}).ask})
	require.NoError(t, err)
	close(answers)

	late := <-done
	require.ErrorIs(t, late.err, calls.ErrInHand)
	require.Len(t, b.provider.requests(), 2)
}

// The points come in their order.
func TestTrace(t *testing.T) {
	t.Parallel()

	var points []calls.Point
	b := setup(t, func(cfg *calls.Config) {
		cfg.Trace = func(_ context.Context, p calls.Point, c calls.Call) {
			if c.Step == step {
				points = append(points, p)
			}
		}
	})
	once := []calls.Point{calls.BeforeIntent, calls.AfterIntent, calls.BeforeCall, calls.AfterAnswer, calls.BeforeResult, calls.AfterResult}

	b.lost(t, calls.Options{})
	require.Equal(t, once, points)
	points = nil
	_, err := b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, append([]calls.Point{calls.BeforeIntent}, once...), points)
	points = nil
	_, err = b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, once[:1], points)

	b.msg, points = &handler.Message{ID: "evt_2"}, nil
	_, err = b.do(t, calls.Options{AskFirst: true, WasItDone: (&lookup{answer: calls.No}).ask})
	require.NoError(t, err)
	require.Equal(t, append([]calls.Point{calls.BeforeIntent, calls.BeforeAsk}, once...), points)
}
