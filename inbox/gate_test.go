package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/memory"
)

// gated is a configuration with the provider as a gate.
func (p *provider) gated() inbox.Config {
	return inbox.Config{Workers: 4, Gates: []*breaker.Breaker{p.breaker}}
}

// While a gate is closed nothing is started but one message at a time, of all runs of
// the consumer, and the source is paused. It is told once when it closes and once when
// it opens.
func TestGate(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{})
	log := &lines{}
	cfg := p.gated()
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	var running, most atomic.Int64
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		now := running.Add(1)
		defer running.Add(-1)
		if p.down.Load() {
			most.Store(max(most.Load(), now))
		}
		return p.handle(ctx, tx, msg)
	}, cfg)
	src := &pausing{scripted: newScripted()}
	r := startSource(t, in, src, src.scripted)
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("first"), nil)))
	require.Eventually(t, func() bool { return src.answer("first") == "settled" }, deadline, tick)
	require.Empty(t, in.Stats().GatesClosed)

	p.goesDown()
	require.Eventually(t, func() bool { return in.Stats().Paused }, deadline, tick)
	require.Equal(t, []string{"invoices"}, in.Stats().GatesClosed)
	for i := range 100 { // of both runs
		require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message(fmt.Sprint("evt_", i)), nil)))
		_, err := in.Store(t.Context(), message(fmt.Sprint("stored_", i)))
		require.NoError(t, err, "what is stored needs no dependency")
	}
	require.Eventually(t, func() bool { return p.calls.Load() > 5 }, deadline, tick)
	require.True(t, in.Stats().Paused)
	require.True(t, src.paused.Load())
	require.EqualValues(t, 1, most.Load(), "one at a time tries")
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM effects`))
	b.requireNothingSpent(t, in)

	p.down.Store(false)
	src.out.Wait()
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 && !in.Stats().Paused }, deadline, tick)
	require.False(t, src.paused.Load())
	r.stop()
	require.NoError(t, r.wait(t))
	require.Equal(t, 201, b.count(t, `SELECT count(DISTINCT message_id) FROM effects`))
	require.Equal(t, 201, b.count(t, `SELECT count(*) FROM effects`))
	b.requireNothingSpent(t, in)
	require.EqualValues(t, 1, in.Stats().Outages)
	require.Empty(t, in.Stats().GatesClosed)

	require.Equal(t, 1, log.count("intake is paused"))
	require.True(t, log.has("level=ERROR", "dependency=invoices", "no attempt is spent; it goes on by itself", errUnanswered.Error()))
	require.Equal(t, 1, log.count("intake goes on"))
	require.True(t, log.has("level=INFO", "dependency=invoices", "after="))
	for _, kind := range []inbox.EventKind{inbox.Paused, inbox.Resumed} {
		events := b.events.kinds(kind)
		require.Len(t, events, 1)
		var away *inbox.DependencyError
		require.ErrorAs(t, events[0].Err, &away)
		require.Equal(t, "invoices", away.Name)
		require.ErrorIs(t, events[0].Err, breaker.ErrOpen)
	}
}

// A message that the dependency always answers 500 does not keep the gate closed.
func TestGate_Poison(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{})
	p.poison.Store("evt_0")
	p.goesDown()
	cfg := p.gated()
	cfg.Workers = 1
	in := b.inbox(t, p.handle, cfg)
	queue := memory.NewQueue("payments")
	publish(t, queue, 0, 30)
	stop := runs(t, in, memory.NewSource(queue))
	require.Eventually(t, func() bool { return p.calls.Load() > 3 }, deadline, tick)
	p.down.Store(false)
	require.Eventually(t, func() bool { return b.count(t, `SELECT count(*) FROM effects`) == 29 }, deadline, tick)
	p.poison.Store("")
	require.NoError(t, queue.Wait(t.Context()))
	stop()
	require.Equal(t, 30, b.count(t, `SELECT count(*) FROM effects`)+len(b.letters(t)), "it may have failed often enough among others that did not")
}

// recalling is a source that takes back what it has handed out when it is paused.
type recalling struct {
	*scripted
	mu      sync.Mutex
	revoked chan struct{} // of what is delivered now; nil: it is paused
	pauses  int
}

func (r *recalling) PauseRecalls() bool { return true }

func (r *recalling) Pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.revoked != nil {
		close(r.revoked)
	}
	r.revoked = nil
	r.pauses++
}

func (r *recalling) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.revoked == nil {
		r.revoked = make(chan struct{})
	}
}

// A source that takes back what it has handed out when it is paused (RabbitMQ) would
// leave nothing at hand to try with: each trial would be fetched anew, with all that
// comes along. What has begun stays, what has not goes back.
func TestGate_SourceThatRecalls(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{OpenFor: 2 * time.Second, OpenMax: 2 * time.Second}) // long enough for all that has begun to meet it
	cfg := p.gated()
	cfg.Workers = 3
	hold := make(chan struct{})
	var begun atomic.Int64
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		begun.Add(1)
		<-hold
		return p.handle(ctx, tx, msg)
	}, cfg)
	src := &recalling{scripted: newScripted(), revoked: make(chan struct{})}
	r := startSource(t, in, src, src.scripted)
	revoked := src.revoked
	for i := range 10 {
		require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message(fmt.Sprint("evt_", i)), revoked)))
	}
	require.Eventually(t, func() bool { return begun.Load() == 3 }, deadline, tick)
	p.goesDown()
	for i := 3; i < 10; i++ {
		require.Eventually(t, func() bool { return src.answer(fmt.Sprint("evt_", i)) == inbox.ErrRevoked.Error() }, deadline, tick)
	}
	close(hold)
	require.Eventually(t, func() bool { return p.calls.Load() > 3 }, deadline, tick)
	for i := range 3 {
		require.Empty(t, src.answer(fmt.Sprint("evt_", i)))
	}
	src.mu.Lock()
	require.Equal(t, 1, src.pauses, "it was not asked for more")
	src.mu.Unlock()

	p.down.Store(false)
	for i := range 3 {
		require.Eventually(t, func() bool { return src.answer(fmt.Sprint("evt_", i)) == "settled" }, deadline, tick)
	}
	r.stop()
	require.NoError(t, r.wait(t))
	require.Equal(t, 3, b.count(t, `SELECT count(*) FROM effects`))
	b.requireNothingSpent(t, in)
}

// A worker of the inbox, without any source, takes nothing while a gate is closed but
// what it tries with.
func TestGate_Work(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{})
	p.goesDown()
	in := b.inbox(t, p.handle, p.gated())
	for i := range 200 {
		_, err := in.Store(t.Context(), message(fmt.Sprint("evt_", i)))
		require.NoError(t, err)
	}
	stop := works(t, in)
	require.Eventually(t, func() bool { return p.calls.Load() > 5 }, deadline, tick)
	require.LessOrEqual(t, b.count(t, `SELECT count(*) FROM inbox_messages WHERE lease_owner IS NOT NULL`), 16, "not more than it holds")
	b.requireNothingSpent(t, in)
	stop()
	require.Zero(t, b.count(t, `SELECT count(*) FROM inbox_messages WHERE lease_owner IS NOT NULL`), "a drain gives back")

	p.down.Store(false)
	works(t, in)
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	require.Equal(t, 200, b.count(t, `SELECT count(*) FROM effects`))
	b.requireNothingSpent(t, in)
}

// A gate closes while a source drains, or before: what does not run goes back at once.
func TestGate_Drain(t *testing.T) {
	t.Parallel()

	for _, when := range []string{"Before", "While"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			p := newProvider(breaker.Config{OpenFor: time.Hour})
			cfg := p.gated()
			cfg.Workers, cfg.DrainTimeout = 2, time.Hour
			h := &blocking{release: make(chan struct{})}
			in := b.inbox(t, h.handle, cfg)
			src := &pausing{scripted: newScripted()}
			r := startSource(t, in, src, src.scripted)
			for i, key := range []string{"a", "a", "b", "", "", ""} {
				require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(keyed(fmt.Sprint("evt_", i), key), nil)))
			}
			require.Eventually(t, func() bool { return h.running.Load() == 2 }, deadline, tick)
			if when == "Before" {
				p.goesDown()
				require.Eventually(t, src.paused.Load, deadline, tick)
				r.stop()
			} else {
				r.stop()
				require.Eventually(t, func() bool { return len(b.events.kinds(inbox.Draining)) > 0 }, deadline, tick)
				p.goesDown()
				require.Eventually(t, src.paused.Load, deadline, tick)
			}
			for i := 3; i < 6; i++ {
				require.Eventually(t, func() bool { return src.answer(fmt.Sprint("evt_", i)) == inbox.ErrDraining.Error() }, deadline, tick)
			}
			close(h.release)
			require.NoError(t, r.wait(t))
			require.Equal(t, "settled", src.answer("evt_0"), "what runs may finish")
			require.Equal(t, "settled", src.answer("evt_2"))
			require.Equal(t, inbox.ErrDraining.Error(), src.answer("evt_1"), "it came before evt_2, and would have been started")
			require.False(t, src.paused.Load(), "the source may be run again")
			require.False(t, in.Stats().Paused)
			require.Len(t, b.events.kinds(inbox.Paused), 1)
			require.Empty(t, b.events.kinds(inbox.Resumed))
			b.requireNothingSpent(t, in)
		})
	}
}

// The database is away while a gate is closed, and the other way round; they come back
// in either order. Nothing is spent and nothing lost.
func TestGate_DatabaseAwayToo(t *testing.T) {
	t.Parallel()

	for _, first := range []string{"Database", "Dependency"} {
		for _, back := range []string{"Database", "Dependency"} {
			t.Run(first+"AwayFirst/"+back+"BackFirst", func(t *testing.T) {
				t.Parallel()

				b := setup(t)
				p := newProvider(breaker.Config{})
				proxy, pool := b.through(t, "")
				in := b.inboxOn(t, pool, "shipping", p.handle, p.gated())
				queue := memory.NewQueue("payments")
				publish(t, queue, 0, 50)
				stop := runs(t, in, memory.NewSource(queue))
				require.NoError(t, queue.Wait(t.Context()))

				paused := func(n int) {
					t.Helper()
					require.Eventually(t, func() bool { return len(b.events.kinds(inbox.Paused)) >= n }, deadline, tick)
				}
				databaseAway := func() { proxy.Refuse(true); proxy.Cut() }
				if first == "Database" {
					databaseAway()
					publish(t, queue, 50, 50)
					paused(1)
					p.goesDown()
					paused(2)
				} else {
					p.goesDown()
					publish(t, queue, 50, 50)
					require.Eventually(t, func() bool { return p.calls.Load() > 2 }, deadline, tick)
					databaseAway()
					paused(2)
				}
				require.True(t, in.Stats().Paused)
				if back == "Database" {
					proxy.Refuse(false)
					require.Eventually(t, func() bool { return p.calls.Load() > 5 }, deadline, tick, "it is tried again")
					require.Equal(t, 50, b.count(t, `SELECT count(*) FROM effects`))
					p.down.Store(false)
				} else {
					p.down.Store(false)
					require.Never(t, func() bool { return !in.Stats().Paused }, 200*time.Millisecond, tick)
					proxy.Refuse(false)
				}
				require.NoError(t, queue.Wait(t.Context()))
				stop()
				require.Equal(t, 100, b.count(t, `SELECT count(DISTINCT message_id) FROM effects`))
				require.Equal(t, 100, b.count(t, `SELECT count(*) FROM effects`))
				b.requireNothingSpent(t, in)
				require.False(t, in.Stats().Paused)
			})
		}
	}
}

// A caller is told while a gate is closed, as in an outage of the database; when the
// dependency may be tried a caller is who tries.
func TestGate_Process(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{OpenFor: 300 * time.Millisecond})
	in := b.inbox(t, p.handle, p.gated())
	_, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	p.goesDown()
	require.Equal(t, []string{"invoices"}, in.Stats().GatesClosed)
	claims := len(b.events.kinds(inbox.Claimed))
	_, err = in.Process(t.Context(), message("evt_2"))
	require.ErrorIs(t, err, inbox.ErrOutage)
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.Len(t, b.events.kinds(inbox.Claimed), claims, "not begun")
	var away *inbox.DependencyError
	require.ErrorAs(t, err, &away)
	require.Equal(t, "invoices", away.Name)
	require.ErrorContains(t, err, `dependency "invoices" is away`)
	require.Zero(t, p.calls.Load())
	outcome, err := in.Store(t.Context(), message("evt_3"))
	require.NoError(t, err, "storing goes on")
	require.Equal(t, handler.Stored, outcome)

	require.Eventually(t, func() bool { return p.breaker.RetryIn() == 0 }, deadline, tick)
	_, err = in.Process(t.Context(), message("evt_2"))
	require.ErrorIs(t, err, inbox.ErrOutage)
	require.ErrorIs(t, err, errUnanswered)
	require.EqualValues(t, 1, p.calls.Load())

	p.down.Store(false)
	require.Eventually(t, func() bool {
		outcome, err := in.Process(t.Context(), message("evt_2"))
		return err == nil && outcome == handler.Processed
	}, deadline, tick)
	require.Equal(t, 1, b.effects(t, "evt_2"))
	b.requireNothingSpent(t, in)
}

// What comes that was handled before needs no call, and does not stand still for ever.
func TestGate_OnlyDuplicates(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := newProvider(breaker.Config{})
	in := b.inbox(t, p.handle, p.gated())
	queue := memory.NewQueue("payments")
	publish(t, queue, 0, 50)
	stop := runs(t, in, memory.NewSource(queue))
	require.NoError(t, queue.Wait(t.Context()))
	p.goesDown()
	require.Eventually(t, func() bool { return in.Stats().Paused }, deadline, tick)
	publish(t, queue, 0, 50)
	require.NoError(t, queue.Wait(t.Context()))
	require.EqualValues(t, 50, in.Stats().Duplicates)
	require.NotEqual(t, breaker.Closed, p.breaker.State())
	stop()
	require.False(t, in.Stats().Paused)
}

// In order: what waits for a dependency holds its key, in its source and in the inbox.
func TestGate_KeepsOrder(t *testing.T) {
	t.Parallel()

	for _, gate := range []bool{true, false} {
		t.Run(fmt.Sprintf("Gate=%t", gate), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			p := newProvider(breaker.Config{})
			seen := b.sequence(t, func(*handler.Message) error { return nil })
			cfg := inbox.Config{Workers: 4, Ordering: inbox.Strict}
			if gate {
				cfg.Gates = p.gated().Gates
			}
			in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				if err := p.call(ctx, msg); err != nil {
					return err
				}
				return seen.handle(ctx, tx, msg)
			}, cfg)
			p.goesDown()
			queue := memory.NewQueue("payments")
			var want []string
			for n := range 10 {
				for _, key := range []string{"a", "b", "c"} {
					id := fmt.Sprint(key, n)
					want = append(want, id)
					if n < 5 {
						_, err := in.Store(t.Context(), keyed(id, key))
						require.NoError(t, err)
					} else {
						require.NoError(t, errors.Join(queue.Publish(t.Context(), []*handler.Message{keyed(id, key)})...))
					}
				}
			}
			stop := runs(t, in, memory.NewSource(queue))
			require.Eventually(t, func() bool { return p.calls.Load() > 10 }, deadline, tick)
			p.down.Store(false)
			require.NoError(t, queue.Wait(t.Context()))
			require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
			stop()
			got := seen.seen(t)
			require.Len(t, got, len(want))
			for _, key := range []string{"a", "b", "c"} {
				of := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return id[:1] != key })
				require.IsIncreasing(t, of)
			}
			b.requireNothingSpent(t, in)
		})
	}
}

// A breaker that is missing, or stands there twice, is an error at start that says
// which.
func TestGate_Impossible(t *testing.T) {
	t.Parallel()

	b := setup(t)
	one := breaker.New("invoices", breaker.Config{})
	_, err := inbox.New(b.Pool, "shipping", effect, inbox.Config{Gates: []*breaker.Breaker{one, nil, one}})
	require.ErrorContains(t, err, "Gates[1] is nil")
	require.ErrorContains(t, err, `Gates[0] and Gates[2] are the same breaker, "invoices"`)
}
