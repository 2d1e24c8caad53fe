package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/memory"
)

var (
	errUnanswered = errors.New("503 service unavailable")
	errBadRequest = errors.New("500 for this one")
)

// provider is something outside, behind a breaker.
type provider struct {
	breaker *breaker.Breaker
	down    atomic.Bool
	poison  atomic.Value // the id of a message that it always answers 500
	calls   atomic.Int64 // that reached it
}

func newProvider(cfg breaker.Config) *provider {
	if cfg.OpenFor == 0 {
		cfg.OpenFor, cfg.OpenMax = 20*time.Millisecond, 100*time.Millisecond
	}
	p := &provider{breaker: breaker.New("invoices", cfg)}
	p.poison.Store("")
	return p
}

func (p *provider) call(ctx context.Context, msg *handler.Message) error {
	return p.breaker.Do(ctx, func(context.Context) error {
		p.calls.Add(1)
		switch {
		case p.down.Load():
			return errUnanswered
		case p.poison.Load() == msg.ID:
			return errBadRequest
		}
		return nil
	})
}

// handle calls the provider in the handler.
func (p *provider) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	if err := p.call(ctx, msg); err != nil {
		return err
	}
	return effect(ctx, tx, msg)
}

// goesDown is noticed by its other users.
func (p *provider) goesDown() {
	p.down.Store(true)
	for p.breaker.State() == breaker.Closed {
		_ = p.call(context.Background(), message("another consumer's"))
	}
	p.calls.Store(0)
}

// publish makes n messages and a queue of them.
func publish(t *testing.T, queue *memory.Queue, from, n int) {
	t.Helper()
	for i := range n {
		require.NoError(t, queue.Publish(t.Context(), []*handler.Message{message(fmt.Sprint("evt_", from+i))})[0])
	}
}

// requireNothingSpent is what an outage leaves.
func (b *testBundle) requireNothingSpent(t *testing.T, in *inbox.Inbox) {
	t.Helper()
	require.Zero(t, in.Stats().FailedAttempts)
	require.Zero(t, b.count(t, `SELECT count(*) FROM inbox_messages WHERE attempts > 0 OR first_failed_at IS NOT NULL`))
	require.Empty(t, b.letters(t))
}

// A breaker that is open is no failed attempt, neither in the handler nor in Prepare.
// Only the messages wait that need it, with nothing held in the database; one at a
// time tries.
func TestDependency_Away(t *testing.T) {
	t.Parallel()

	for _, where := range []string{"Handler", "Prepare"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			p := newProvider(breaker.Config{})
			p.goesDown()
			needs := func(msg *handler.Message) bool { return msg.ID[len(msg.ID)-1] == '0' }
			log := &lines{}
			cfg := inbox.Config{Workers: 4, Logger: slog.New(slog.NewTextHandler(log, nil))}
			h := effect
			if where == "Handler" {
				h = func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
					if needs(msg) {
						return p.handle(ctx, tx, msg)
					}
					return effect(ctx, tx, msg)
				}
			} else {
				cfg.Prepare = func(ctx context.Context, msg *handler.Message) error {
					if needs(msg) {
						return p.call(ctx, msg)
					}
					return nil
				}
			}
			in := b.inbox(t, h, cfg)
			queue := memory.NewQueue("payments")
			publish(t, queue, 0, 100)
			stop := runs(t, in, memory.NewSource(queue))
			require.Eventually(t, func() bool { return b.count(t, `SELECT count(*) FROM effects`) == 90 }, deadline, tick, "the others go on")
			require.Eventually(t, func() bool { return p.calls.Load() > 3 && in.Stats().Running == 0 }, deadline, tick, "it is tried")
			require.Equal(t, 10, in.Stats().Waiting)
			require.False(t, in.Stats().Paused)
			require.Empty(t, in.Stats().GatesClosed)
			require.Eventually(t, func() bool { // between two trials
				return b.count(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND state LIKE 'idle in transaction%'`, b.Schema) == 0
			}, deadline, tick)
			b.requireNothingSpent(t, in)

			p.down.Store(false)
			require.NoError(t, queue.Wait(t.Context()))
			stop()
			require.Equal(t, 100, b.count(t, `SELECT count(*) FROM effects`))
			require.Equal(t, 1, b.effects(t, "evt_0"))
			b.requireNothingSpent(t, in)
			require.True(t, log.has("level=WARN", "messages that need it wait", "dependency=invoices"))
			require.True(t, log.has("level=INFO", "go on", "dependency=invoices"))
		})
	}
}

// The failures that opened a breaker are given back: those of quick attempts, and
// those that are permanent, as all are when a secret was changed.
func TestDependency_FailuresThatOpenedIt(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		failures uint32
		gate     bool
		mark     func(error) error
		cfg      inbox.Config
	}{
		{name: "Failed", failures: 3, mark: func(err error) error { return err }},
		{name: "FailedAtAGate", failures: 3, gate: true, mark: func(err error) error { return err }},
		{name: "Unavailable", failures: 3, mark: handler.Unavailable},
		{name: "Stored", failures: 1, mark: func(err error) error { return err }, cfg: inbox.Config{QuickAttempts: 1, Retry: retries}},
		{name: "Permanent", failures: 1, mark: handler.Permanent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			p := newProvider(breaker.Config{Failures: tt.failures})
			cfg := tt.cfg
			cfg.Workers = 4
			if tt.gate {
				cfg.Gates = p.gated().Gates
			}
			in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				if err := p.call(ctx, msg); err != nil {
					return tt.mark(err)
				}
				return effect(ctx, tx, msg)
			}, cfg)
			p.down.Store(true)
			queue := memory.NewQueue("payments")
			publish(t, queue, 0, 50)
			stop := runs(t, in, memory.NewSource(queue))
			require.Eventually(t, func() bool {
				return p.calls.Load() > 10 && in.Stats().Running <= 1 && in.Stats().FailedAttempts < int64(tt.failures)
			}, deadline, tick)
			require.Zero(t, b.inboxRows(t))
			require.Empty(t, b.letters(t))
			p.down.Store(false)
			require.NoError(t, queue.Wait(t.Context()))
			stop()
			require.Equal(t, 50, b.count(t, `SELECT count(*) FROM effects`))
			b.requireNothingSpent(t, in)
		})
	}
}

// Attempts fail one after the other while the breaker is closed, and are counted. The
// last one finds it open: all of them are given back. Without a breaker they had been
// the message's end.
func TestDependency_QuickAttemptsGivenBack(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{Failures: 3})
	in := b.inbox(t, p.handle, inbox.Config{QuickAttempts: 3})
	p.down.Store(true)
	_, err := in.Process(t.Context(), message("evt_1"))
	require.ErrorIs(t, err, inbox.ErrOutage)
	require.ErrorIs(t, err, errUnanswered)
	require.EqualValues(t, 3, p.calls.Load())
	b.requireNothingSpent(t, in)
	require.Len(t, b.events.kinds(inbox.AttemptFailed), 2)

	p.down.Store(false)
	require.Eventually(t, func() bool {
		outcome, err := in.Process(t.Context(), message("evt_1"))
		return err == nil && outcome == handler.Processed
	}, deadline, tick)
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// A message was put off, with attempts that a dependency failed which was about to go
// away. When it comes again and meets the open breaker they are given back, in its row
// too; those from before the breaker last closed stay, and so do those of another
// kind.
func TestDependency_PutOffBefore(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{Failures: 3})
	var own atomic.Bool
	own.Store(true)
	errOwn := errors.New("its own fault")
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if own.Swap(false) {
			return errOwn
		}
		return p.handle(ctx, tx, msg)
	}, inbox.Config{QuickAttempts: 3, Retry: inbox.Retry{Attempts: 8, Delay: time.Hour, MaxDelay: time.Hour}})
	p.down.Store(true)
	outcome, err := in.Process(t.Context(), message("evt_1")) // fails by itself, then twice with the provider
	require.NoError(t, err)
	require.Equal(t, handler.Stored, outcome)
	require.Equal(t, 3, b.count(t, `SELECT attempts FROM inbox_messages`))
	require.EqualValues(t, 3, in.Stats().FailedAttempts)

	p.goesDown()
	stop := works(t, in)
	b.exec(t, `UPDATE inbox_messages SET ready_at = clock_timestamp()`)
	require.Eventually(t, func() bool { return b.count(t, `SELECT attempts FROM inbox_messages`) == 1 }, deadline, tick)
	require.EqualValues(t, 1, in.Stats().FailedAttempts)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM inbox_messages WHERE first_failed_at IS NOT NULL AND lease_owner IS NOT NULL`))

	p.down.Store(false)
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	stop()
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// A message that failed on a dependency waits for it also when it is about to die of
// something else: it dies with the attempts that were its own.
func TestDependency_DiesOfSomethingElse(t *testing.T) {
	t.Parallel()

	for _, mark := range []func(error) error{handler.Permanent, func(err error) error { return err }} {
		b := setup(t)
		p := newProvider(breaker.Config{OpenFor: 20 * time.Millisecond})
		var attempts atomic.Int64
		in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
			switch attempts.Add(1) {
			case 1:
				p.down.Store(true)
				return p.call(ctx, msg)
			case 2:
				p.goesDown()
			}
			return mark(errors.New("its own fault"))
		}, inbox.Config{QuickAttempts: 2, Retry: inbox.Retry{Attempts: 2}})
		queue := memory.NewQueue("payments")
		publish(t, queue, 1, 1)
		stop := runs(t, in, memory.NewSource(queue))
		require.NoError(t, queue.Wait(t.Context()))
		stop()
		require.EqualValues(t, 3, attempts.Load(), "it ran once more")
		letter := b.letters(t)[0]
		require.Equal(t, "its own fault", letter.Errors[0])
		require.EqualValues(t, in.Stats().FailedAttempts, letter.Attempts)
		if letter.Reason == dlq.Permanent {
			require.Equal(t, 1, letter.Attempts)
		} else {
			require.Equal(t, 2, letter.Attempts)
		}
	}
}

// A message whose calls always fail, while those of others succeed, is no outage: its
// attempts count, and it ends in the dead letters.
func TestDependency_PoisonAmongOthers(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{Failures: 3})
	p.poison.Store("poison")
	in := b.inbox(t, p.handle, inbox.Config{Workers: 4, QuickAttempts: 2, Retry: inbox.Retry{Attempts: 4, Delay: time.Millisecond, MaxDelay: 20 * time.Millisecond}})
	queue := memory.NewQueue("payments")
	stop := runs(t, in, memory.NewSource(queue))
	require.NoError(t, queue.Publish(t.Context(), []*handler.Message{message("poison")})[0])
	sent := 0
	for ; b.count(t, `SELECT count(*) FROM dead_letters`) == 0; sent += 10 {
		publish(t, queue, sent, 10)
		require.NoError(t, queue.Wait(t.Context()))
	}
	stop()
	letter := b.letters(t)[0]
	require.Equal(t, dlq.Exhausted, letter.Reason)
	require.Equal(t, 4, letter.Attempts)
	require.Contains(t, letter.Errors[0], errBadRequest.Error())
	require.Equal(t, sent, b.count(t, `SELECT count(*) FROM effects`))
}

// What is unavailable without a breaker is a failed attempt, as ever.
func TestDependency_NoBreaker(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, func(context.Context, pgx.Tx, *handler.Message) error { return handler.Unavailable(errUnanswered) }, inbox.Config{})
	outcome, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	require.Equal(t, 3, b.letters(t)[0].Attempts)
}

// The retry budget is spent: the breaker is closed, and the message waits a moment.
func TestDependency_BudgetSpent(t *testing.T) {
	t.Parallel()

	for _, how := range []string{"Run", "Process"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			p := newProvider(breaker.Config{})
			var refusals atomic.Int64
			in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				if refusals.Add(1) <= 3 {
					return &breaker.OpenError{Breaker: p.breaker, RetryIn: time.Millisecond, Err: breaker.ErrBudget}
				}
				return p.handle(ctx, tx, msg)
			}, inbox.Config{QuickAttempts: 3})
			if how == "Run" {
				queue := memory.NewQueue("payments")
				publish(t, queue, 1, 1)
				stop := runs(t, in, memory.NewSource(queue))
				require.NoError(t, queue.Wait(t.Context()))
				stop()
			} else {
				_, err := in.Process(t.Context(), message("evt_1"))
				require.NoError(t, err)
			}
			require.Equal(t, 1, b.effects(t, "evt_1"))
			b.requireNothingSpent(t, in)
		})
	}
}

// A drain waits for no dependency: what waits for one goes back at once.
func TestDependency_Drain(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{OpenFor: time.Hour})
	p.goesDown()
	in := b.inbox(t, p.handle, inbox.Config{DrainTimeout: time.Hour})
	src := newScripted()
	r := start(t, in, src)
	for i := range 20 {
		require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(keyed(fmt.Sprint("evt_", i), fmt.Sprint(i%4)), nil)))
	}
	require.Eventually(t, func() bool { s := in.Stats(); return s.Waiting == 20 && s.Running == 0 }, deadline, tick)
	r.stop()
	require.NoError(t, r.wait(t))
	for i := range 20 {
		require.Equal(t, inbox.ErrDraining.Error(), src.answer(fmt.Sprint("evt_", i)))
	}
	b.requireNothingSpent(t, in)
}

// A source takes back what waits for a dependency.
func TestDependency_Revoked(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{OpenFor: time.Hour})
	p.goesDown()
	in := b.inbox(t, p.handle, inbox.Config{})
	src := newScripted()
	r := start(t, in, src)
	revoked := make(chan struct{})
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("evt_1"), revoked)))
	require.Eventually(t, func() bool { s := in.Stats(); return s.Waiting == 1 && s.Running == 0 }, deadline, tick)
	close(revoked)
	require.Eventually(t, func() bool { return src.answer("evt_1") == inbox.ErrRevoked.Error() }, deadline, tick)
	r.stop()
	require.NoError(t, r.wait(t))
}

// A message that runs alone, as it may have killed processes, lets the others of its
// like run while it waits for a dependency. Then it is alone again.
func TestDependency_Suspect(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{})
	p.goesDown()
	second, release := make(chan struct{}), make(chan struct{})
	var running, together atomic.Int64
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		together.Store(max(together.Load(), running.Add(1)))
		defer running.Add(-1)
		if msg.ID == "evt_1" {
			return p.handle(ctx, tx, msg)
		}
		close(second)
		<-release
		return effect(ctx, tx, msg)
	}, inbox.Config{})
	src := newScripted()
	r := start(t, in, src)
	deliver := func(id string) {
		msg := message(id)
		msg.Origin.Redelivered = true
		b.exec(t, `INSERT INTO attempt_journal (consumer_id, message_id) VALUES (consumer_id('shipping'), message_id($1))`, id)
		require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(msg, nil)))
	}

	deliver("evt_1")
	require.Eventually(t, func() bool { s := in.Stats(); return s.Waiting == 1 && s.Running == 0 }, deadline, tick)
	deliver("evt_2")
	select {
	case <-second:
	case <-time.After(deadline):
		t.Fatal("it waits for a dependency that it does not need")
	}
	p.down.Store(false)
	require.Eventually(t, func() bool { return p.breaker.RetryIn() == 0 }, deadline, tick)
	close(release)
	for _, id := range []string{"evt_1", "evt_2"} {
		require.Eventually(t, func() bool { return src.answer(id) == "settled" }, deadline, tick)
	}
	require.Equal(t, int64(1), together.Load())
	require.Zero(t, b.count(t, `SELECT count(*) FROM attempt_journal`))
	r.stop()
	require.NoError(t, r.wait(t))
}

// A message of the inbox that waits keeps its lease, and nobody takes it for one whose
// process died.
func TestDependency_LeaseIsKept(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{OpenFor: 2 * time.Second})
	p.goesDown()
	cfg := inbox.Config{Lease: 300 * time.Millisecond}
	in := b.inbox(t, p.handle, cfg)
	_, err := in.Store(t.Context(), message("evt_1"))
	require.NoError(t, err)
	stop := works(t, in)
	require.Eventually(t, func() bool { s := in.Stats(); return s.Waiting == 1 && s.Running == 0 }, deadline, tick)
	other := b.inbox(t, func(context.Context, pgx.Tx, *handler.Message) error { return errors.New("taken by another") }, cfg)
	works(t, other)
	p.down.Store(false)
	require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 }, deadline, tick)
	require.Zero(t, other.Stats().FailedAttempts)
	stop()
}

// A handler as the trial ends its goroutine, panics, hangs past its deadline, or
// ignores that: the consumer goes on to the next.
func TestDependency_TrialEndsBadly(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		call func(ctx context.Context, release <-chan struct{}) error
	}{
		{name: "Goexit", call: func(context.Context, <-chan struct{}) error { runtime.Goexit(); return nil }},
		{name: "Panic", call: func(context.Context, <-chan struct{}) error { panic("no") }},
		{name: "Hangs", call: func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() }},
		{name: "Stuck", call: func(_ context.Context, release <-chan struct{}) error { <-release; return errUnanswered }},
	}
	for _, tt := range tests {
		for _, gate := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/Gate=%t", tt.name, gate), func(t *testing.T) {
				t.Parallel()

				b := setup(t)
				p := newProvider(breaker.Config{OpenFor: 20 * time.Millisecond, OpenMax: 50 * time.Millisecond, TrialTimeout: 400 * time.Millisecond})
				p.goesDown()
				p.down.Store(false)
				release := make(chan struct{})
				var trials atomic.Int64
				cfg := inbox.Config{Workers: 3, HandlerTimeout: 300 * time.Millisecond, WatchdogGrace: 100 * time.Millisecond, QuickAttempts: 5}
				if gate {
					cfg.Gates = []*breaker.Breaker{p.breaker}
				}
				in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
					err := p.breaker.Do(ctx, func(ctx context.Context) error {
						if trials.Add(1) <= 2 {
							return tt.call(ctx, release)
						}
						return nil
					})
					if err != nil {
						return err
					}
					return effect(ctx, tx, msg)
				}, cfg)
				queue := memory.NewQueue("payments")
				publish(t, queue, 0, 20)
				stop := runs(t, in, memory.NewSource(queue))
				require.NoError(t, queue.Wait(t.Context()))
				close(release)
				require.Eventually(t, func() bool { return in.Stats().Stuck == 0 }, deadline, tick)
				stop()
				require.Equal(t, 20, b.count(t, `SELECT count(*) FROM effects`))
				require.Empty(t, b.letters(t))
			})
		}
	}
}

// A provider in maintenance says when to come back. The quick attempts are made all
// the same, and open its breaker, which waits for so long: a message that was put off
// at the first of them, and was taken by another process each time, would be dead
// before any breaker had seen three failures.
func TestDependency_AsksForLater(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{})
	p.down.Store(true)
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if err := p.handle(ctx, tx, msg); err != nil {
			return handler.Unavailable(handler.RetryAfter(time.Hour, err))
		}
		return nil
	}, inbox.Config{Workers: 1, QuickDelay: time.Millisecond, QuickMaxDelay: 5 * time.Millisecond})
	queue := memory.NewQueue("payments")
	publish(t, queue, 0, 2)
	stop := runs(t, in, memory.NewSource(queue))
	require.Eventually(t, func() bool { return p.calls.Load() > 5 && in.Stats().Waiting == 2 }, deadline, tick)
	require.Zero(t, b.inboxRows(t))

	p.down.Store(false)
	require.NoError(t, queue.Wait(t.Context()))
	stop()
	require.Equal(t, 2, b.count(t, `SELECT count(*) FROM effects`))
	b.requireNothingSpent(t, in)
}
