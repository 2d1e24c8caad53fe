package calls_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
)

// world is a provider with a clock of its own, which loses answers.
type world struct {
	mu      sync.Mutex
	now     time.Duration
	keys    bool                     // it knows idempotency keys, for a day
	seen    map[string]time.Duration // when it saw a key first
	effects map[string]int           // of messages
	number  map[string]int           // by key, or by message if it has none
	numbers int
}

// work does what a request asks for.
func (w *world) work(msg, key string) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.keys {
		key = msg
	} else if at, known := w.seen[key]; known && w.now-at < 24*hour {
		return fmt.Appendf(nil, "%d", w.number[key])
	} else {
		w.seen[key] = w.now
	}
	w.effects[msg]++
	w.numbers++
	w.number[key] = w.numbers
	return fmt.Appendf(nil, "%d", w.numbers)
}

// done is what it says when it is asked by a machine or by a person.
func (w *world) done(msg string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.effects[msg] > 0
}

// Whatever goes wrong between a service and a provider, in whatever order, at the
// end each message is done once: answers are lost, requests are, the provider refuses
// for a while, processes freeze and wake up later, days pass.
func TestModel(t *testing.T) {
	t.Parallel()

	kinds := []struct {
		name string
		keys bool
		o    func(w *world) calls.Options
	}{
		{name: "Keys", keys: true, o: func(*world) calls.Options { return calls.Options{} }},
		{name: "KeysAndAsked", keys: true, o: func(w *world) calls.Options { return calls.Options{WasItDone: w.ask} }},
		{name: "AskedFirst", o: func(w *world) calls.Options { return calls.Options{AskFirst: true, WasItDone: w.ask} }},
		{name: "AskedAfterwards", o: func(w *world) calls.Options { return calls.Options{KeyTTL: -1, WasItDone: w.ask} }},
		{name: "Nothing", o: func(*world) calls.Options { return calls.Options{KeyTTL: -1} }},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()

			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
			w := &world{keys: kind.keys, seen: map[string]time.Duration{}, effects: map[string]int{}, number: map[string]int{}}
			b := setup(t, func(cfg *calls.Config) { cfg.Logger = slog.New(slog.DiscardHandler) })
			o := kind.o(w)
			const messages = 12
			var frozen []func() outcome
			pick := func() { b.msg = &handler.Message{ID: fmt.Sprintf("evt_%d", r.IntN(messages))} }
			pass := func(by time.Duration) {
				w.mu.Lock()
				w.now += by
				w.mu.Unlock()
				b.age(t, by)
			}
			for range 250 {
				pick()
				switch n := r.IntN(10); {
				case n < 6:
					_, err := b.doWith(t, w.call(b.msg.ID, r.IntN(6)), o)
					if errors.Is(err, handler.ErrCallUnknown) && r.IntN(2) == 0 {
						b.looks(t, w)
					}
				case n < 7: // a process freezes in its call, which the provider does
					msg := b.msg.ID
					if thaw, began := b.freezes(t, o, func(key string) []byte { return w.work(msg, key) }); began {
						frozen = append(frozen, thaw)
					}
				case n < 8 && len(frozen) > 0:
					_ = frozen[0]()
					frozen = frozen[1:]
				default:
					pass([]time.Duration{time.Second, callTime, hour, 23 * hour}[r.IntN(4)])
				}
			}
			for _, thaw := range frozen {
				_ = thaw()
			}
			for i := range messages { // all goes well at last
				b.msg = &handler.Message{ID: fmt.Sprintf("evt_%d", i)}
				for range 4 {
					pass(callTime)
					_, err := b.doWith(t, w.call(b.msg.ID, 0), o)
					if errors.Is(err, handler.ErrCallUnknown) {
						b.looks(t, w)
						continue
					}
					require.NoError(t, err)
				}
				require.Equal(t, 1, w.effects[b.msg.ID], b.msg.ID)
				_, err := b.result(t)
				require.NoError(t, err)
			}
		})
	}
}

// call is a request that goes wrong in one of several ways; 0 and 1 go well.
func (w *world) call(msg string, how int) calls.Func {
	return func(_ context.Context, key string) ([]byte, error) {
		switch how {
		case 2: // the answer is lost
			w.work(msg, key)
			return nil, errReset
		case 3: // the request is
			return nil, errReset
		case 4:
			if w.done(msg) {
				return w.work(msg, key), nil
			}
			return nil, handler.Permanent(errReset)
		case 5:
			return nil, unsent{errReset}
		}
		return w.work(msg, key), nil
	}
}

func (w *world) ask(_ context.Context, c calls.Call) ([]byte, calls.Answer, error) {
	if w.done(c.Message) {
		return []byte("asked"), calls.Yes, nil
	}
	return nil, calls.No, nil
}

// looks has a person look at the provider and decide.
func (b *testBundle) looks(t *testing.T, w *world) {
	t.Helper()
	d := calls.NotDone
	if w.done(b.msg.ID) {
		d = calls.WasDone
	}
	b.resolve(t, calls.Resolution{Decision: d, By: "ann"})
}

// freezes begins a call that is done at once and answers once thaw is called; it did
// not begin if there was nothing to call.
func (b *testBundle) freezes(t *testing.T, o calls.Options, work func(key string) []byte) (thaw func() outcome, began bool) {
	t.Helper()
	sent, answers, done := make(chan struct{}), make(chan struct{}), make(chan outcome, 1)
	ctx, msg := b.context(context.Background()), b.msg
	go func() {
		result, err := b.ledger.Do(ctx, msg, step, func(_ context.Context, key string) ([]byte, error) {
			result := work(key)
			close(sent)
			<-answers
			return result, nil
		}, o)
		done <- outcome{result, err}
	}()
	select {
	case <-sent:
		return func() outcome {
			close(answers)
			return <-done
		}, true
	case <-done:
		return nil, false
	}
}
