package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// latencyPace is how often an event is written: 500 a second.
const latencyPace = 2 * time.Millisecond

// relayLatency is how much later an event is confirmed by Kafka than it would be
// if it were produced at once.
func (b *bench) relayLatency(ctx context.Context) (r result, err error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	t, err := newTopic(ctx)
	if err != nil {
		return result{}, err
	}
	defer t.drop()
	publishers, done, err := t.publishers(1)
	if err != nil {
		return result{}, err
	}
	defer done()
	raw, err := kgo.NewClient(t.seeds, noLinger())
	if err != nil {
		return result{}, fmt.Errorf("make a Kafka client: %w", err)
	}
	defer raw.Close()

	w := newWatch(publishers[0].(handler.OrderedPublisher))
	pool, err := newPool(ctx, db.schema, fleetConns, nil)
	if err != nil {
		return result{}, err
	}
	defer pool.Close()
	f, err := db.startFleet(ctx, pool, batch, []handler.Publisher{w})
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, f.end()) }()
	f.open()
	n := outbox.NewNotifier(pool, db.schema)
	f.group.Go(func() error { return n.Run(f.run) })

	write := db.writeEvent()
	relayed := side{"commit to confirm", func(ctx context.Context) (float64, error) {
		err := paced(ctx, b.round, func(ctx context.Context, msg *handler.Message) error {
			w.expect(msg.ID)
			if err := write(ctx, msg); err != nil {
				return err
			}
			w.committed(msg.ID)
			n.Wake()
			return nil
		})
		if err != nil {
			return 0, err
		}
		return w.p99(ctx)
	}}
	produced := side{"produce", func(ctx context.Context) (float64, error) {
		var times stopwatch
		err := paced(ctx, b.round, times.timing(func(ctx context.Context, msg *handler.Message) error {
			return raw.ProduceSync(ctx, t.record(msg)).FirstErr()
		}))
		if err != nil {
			return 0, err
		}
		return times.p99()
	}}
	for _, s := range []side{relayed, produced} { // connects
		if _, err := s.measure(f.run); err != nil {
			return result{}, fmt.Errorf("warm up: %w", err)
		}
	}
	r, err = b.compare(f.run, difference("%.1f ms"), relayed, produced)
	r.details = append(r.details, fmt.Sprintf("p99 at %d events/s, one relay, woken by a notifier", time.Second/latencyPace))
	return r, err
}

// paced does f at a steady pace for d, whether it has ended the times before or
// not, and waits for all.
func paced(ctx context.Context, d time.Duration, f handleFunc) error {
	group, ctx := errgroup.WithContext(ctx)
	tick := time.NewTicker(latencyPace)
	defer tick.Stop()
	for range d / latencyPace {
		select {
		case <-ctx.Done():
			return group.Wait()
		case <-tick.C:
		}
		msg := newMessage()
		group.Go(func() error { return f(ctx, msg) })
	}
	return group.Wait()
}

// watch is a publisher that sees how long after their commits events are
// confirmed.
type watch struct {
	handler.OrderedPublisher

	mu        sync.Mutex
	commits   map[string]time.Time // zero: not yet
	confirms  map[string]time.Time
	confirmed chan struct{} // one place
}

func newWatch(p handler.OrderedPublisher) *watch {
	return &watch{
		OrderedPublisher: p,
		commits:          make(map[string]time.Time), confirms: make(map[string]time.Time),
		confirmed: make(chan struct{}, 1),
	}
}

// Publish implements [handler.Publisher].
func (w *watch) Publish(ctx context.Context, msgs []*handler.Message) []error {
	errs := w.OrderedPublisher.Publish(ctx, msgs)
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, msg := range msgs {
		if errs[i] == nil {
			w.confirms[msg.ID] = now
		}
	}
	select {
	case w.confirmed <- struct{}{}:
	default:
	}
	return errs
}

func (w *watch) expect(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits[id] = time.Time{}
}

func (w *watch) committed(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits[id] = time.Now()
}

// p99 waits until all events are confirmed, and forgets them. An event may be
// confirmed before its writer hears of its commit.
func (w *watch) p99(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, drainPatience, errors.New("not all events were confirmed"))
	defer cancel()
	for !w.all() {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-w.confirmed:
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var times stopwatch
	for id, committed := range w.commits {
		times.add(max(0, w.confirms[id].Sub(committed)))
	}
	clear(w.commits)
	clear(w.confirms)
	return times.p99()
}

func (w *watch) all() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.commits {
		if w.confirms[id].IsZero() {
			return false
		}
	}
	return true
}
