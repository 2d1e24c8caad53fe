package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/internal/services"
)

// patience is how long one thing may take.
const patience = 2 * time.Minute

// soaking is a soak that goes on.
type soaking struct {
	cfg     config
	stderr  io.Writer
	pool    *pgxpool.Pool
	streams []*stream
	child   *process
	began   time.Time
	samples []sample

	// Of the disturbing goroutine.
	disturbed int
	visitors  []int64 // duplicates that each has recognised

	mu sync.Mutex // guards lines of progress on stderr
}

// soak runs a soak from its empty schemas to the count.
func soak(ctx context.Context, cfg config, stderr io.Writer) (res result, err error) {
	pool, err := pgxpool.New(ctx, os.Getenv(services.PostgresVariable))
	if err != nil {
		return res, fmt.Errorf("connect to what %s names: it is not a connection string", services.PostgresVariable)
	}
	defer pool.Close()
	r := &soaking{cfg: cfg, stderr: stderr, pool: pool}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		for _, s := range r.streams {
			err = errors.Join(err, s.remove(ctx))
		}
	}()
	id := strings.ToLower(rand.Text()[:8])
	for _, broker := range []string{onKafka, onRabbitMQ} {
		s, err := newStream(ctx, pool, place{broker, "soak_" + id + "_" + broker}, cfg.poisonIn())
		r.streams = append(r.streams, s)
		if err != nil {
			return res, err
		}
	}
	r.child, _, err = launch(ctx, setup{Streams: r.places(onKafka, onRabbitMQ), Plant: cfg.plant}, stderr)
	if err != nil {
		return res, err
	}
	defer r.child.kill()

	if err := r.load(ctx); err != nil {
		return res, err
	}
	if err := r.quiet(ctx); err != nil {
		return res, err
	}
	last, err := r.child.finish(ctx)
	if err != nil {
		return res, err
	}
	r.sayLog(last.Log)
	return r.conclude(ctx, last)
}

// load sends, disturbs and samples for as long as it was asked to, and until
// there are samples enough to see a trend: a short soak on a busy machine.
func (r *soaking) load(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	timed, stop := context.WithCancel(ctx)
	defer stop()
	enough := make(chan struct{})

	r.began = time.Now()
	r.say("%s", sampleHeader)
	var all sync.WaitGroup
	run := func(do func(context.Context) error) {
		all.Go(func() {
			if err := do(timed); err != nil {
				fail(err)
			}
		})
	}
	for _, s := range r.streams {
		run(func(ctx context.Context) error { return s.produce(ctx, r.cfg.rate) })
	}
	run(r.disturb)
	run(func(ctx context.Context) error { return r.watch(ctx, enough) })
	all.Go(func() {
		defer stop()
		pause(ctx, r.cfg.length)
		select {
		case <-enough:
		case <-ctx.Done():
		}
	})
	all.Wait()
	return context.Cause(ctx)
}

// watch takes samples until ctx ends. It closes enough when there are enough.
func (r *soaking) watch(ctx context.Context, enough chan<- struct{}) error {
	tick := time.NewTicker(r.cfg.sampleEvery())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		s, err := r.look(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		if r.samples = append(r.samples, s); len(r.samples) == minSamples {
			close(enough)
		}
		r.say("%s", s)
	}
}

// quiet waits until all that was sent is settled and nothing waits anywhere any
// more, or nothing happens any more.
func (r *soaking) quiet(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	changed, before := time.Now(), int64(-1)
	for calm := 0; calm < 2; { // twice: a message can be on its way from the broker to the child
		said, err := r.child.do(ctx, look)
		if err != nil {
			return err
		}
		open, now := said.Pending > 0, -int64(said.Pending)
		for _, s := range r.streams {
			settled, lag, err := s.progress(ctx)
			if err != nil {
				return err
			}
			open = open || lag > 0 || settled < s.distinct.Load()
			now += settled - lag
		}
		calm++
		if open {
			calm = 0
		}
		if now != before {
			changed, before = time.Now(), now
		}
		if silent := r.cfg.silence(); time.Since(changed) > silent {
			r.say("nothing has happened for %s: counting what is there", silent)
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// conclude counts, after the last consumer has ended.
func (r *soaking) conclude(ctx context.Context, last report) (result, error) {
	res := result{length: r.cfg.length, disturbances: r.disturbed}
	for _, s := range r.streams {
		waiting, err := s.broker.lag(ctx)
		if err != nil {
			return res, err
		}
		t, err := s.count(ctx)
		if err != nil {
			return res, err
		}
		t.waiting = int(waiting)
		t.duplicates = int(last.Duplicates[s.place.Broker])
		if s.place.Broker == onKafka {
			for _, n := range r.visitors {
				t.duplicates += int(n)
			}
		}
		res.tallies, res.brokers = append(res.tallies, t), append(res.brokers, s.place.Broker)
	}
	for i := range resourceCount {
		res.trends = append(res.trends, newTrend(i, r.samples))
	}
	return res, nil
}

// places are those of the streams on these brokers.
func (r *soaking) places(brokers ...string) (places []place) {
	for _, s := range r.streams {
		if slices.Contains(brokers, s.place.Broker) {
			places = append(places, s.place)
		}
	}
	return places
}

// applications are the names of the child's sessions.
func (r *soaking) applications() (names []string) {
	for _, s := range r.streams {
		names = append(names, s.place.Name)
	}
	return names
}

func (r *soaking) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.stderr, format+"\n", args...)
}

// sayLog tells how often the consumer has logged what.
func (r *soaking) sayLog(counts map[string]int) {
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		r.say("%8d times in its log: %s", counts[text], text)
	}
}
