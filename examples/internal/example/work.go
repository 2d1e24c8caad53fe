package example

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/schema"
)

const (
	// settleTimeout is how long after the last task everything must have happened
	// that follows from it.
	settleTimeout = time.Minute

	// stopPatience is for processes that are told to stop. All is done by then, or
	// nobody wants it any more.
	stopPatience = 5 * time.Second
)

// Work is what happens in a run.
type Work struct {
	// Crew are the processes. They are stopped at the end.
	Crew *crew.Crew

	// Tasks are what there is to do. Each gets a goroutine.
	Tasks []func(context.Context) error

	// Beside runs beside the tasks, until all that follows from them has happened.
	Beside []func(context.Context) error

	// Progress says how far the work is. It is asked a few times a second; a line of
	// it is printed each second.
	Progress func(context.Context) (line string, err error)

	// Settled reports that all has happened that follows from the tasks. It is asked
	// when they are done. Defaults to [Run.Settled].
	Settled func(context.Context) (bool, error)
}

// Work does the work, and returns when all has happened that follows from it, or
// should have.
func (r *Run) Work(ctx context.Context, w Work) (err error) {
	defer func() { err = errors.Join(err, w.Crew.Stop(stopPatience)) }()
	if w.Settled == nil {
		w.Settled = r.Settled
	}
	g, ctx := errgroup.WithContext(ctx)
	working, workIsOver := context.WithCancel(ctx)
	defer workIsOver()

	var left atomic.Int64
	left.Store(int64(len(w.Tasks)))
	for _, task := range w.Tasks {
		g.Go(func() error {
			defer left.Add(-1)
			return task(ctx)
		})
	}
	for _, beside := range append(w.Beside, w.Crew.Watch) {
		g.Go(func() error {
			err := beside(working)
			if errors.Is(err, context.Canceled) && ctx.Err() == nil {
				return nil // it was told to end
			}
			return err
		})
	}
	g.Go(func() error {
		defer workIsOver()
		return r.watch(ctx, w, func() bool { return left.Load() == 0 })
	})
	return g.Wait()
}

// watch prints how far the work is, and returns when all of it is done.
func (r *Run) watch(ctx context.Context, w Work, done func() bool) error {
	const look, line = 100 * time.Millisecond, time.Second
	var printed, since time.Time
	for {
		settled := false
		if done() {
			if since.IsZero() {
				since = time.Now()
			}
			var err error
			if settled, err = w.Settled(ctx); err != nil {
				return err
			}
		}
		progress, err := w.Progress(ctx) // after the other question, so that the last line has it all
		if err != nil {
			return err
		}
		if settled || time.Since(printed) >= line {
			r.Say("%s", progress)
			printed = time.Now()
		}
		switch {
		case settled:
			return nil
		case !since.IsZero() && time.Since(since) > settleTimeout:
			r.Say("not everything was done within %s", settleTimeout)
			return nil
		}
		if err := Wait(ctx, look); err != nil {
			return err
		}
	}
}

// Settled reports that every event is published and acknowledged by all consumers
// of the topic, and no message waits in an inbox for anything but a person.
//
// The order of the questions matters: who has acknowledged all that was ever written
// causes nothing new.
func (r *Run) Settled(ctx context.Context) (bool, error) {
	least := int64(-1)
	for _, consumer := range r.setup.Consumers {
		acknowledged, err := r.Kafka.Committed(ctx, r.Services("").Group(consumer), r.Topic)
		if err != nil {
			return false, err
		}
		if least < 0 || acknowledged < least {
			least = acknowledged
		}
	}
	var left int64
	if err := r.Pool.QueryRow(ctx, schema.Qualify(`
		SELECT (SELECT count(*) FROM semel.outbox WHERE published_at IS NULL)
		     + (SELECT count(*) FROM semel.inbox_messages WHERE ready_at IS NOT NULL)`, r.Schema)).Scan(&left); err != nil {
		return false, fmt.Errorf("look what is left to be done: %w", err)
	}
	written, err := r.Kafka.Written(ctx, r.Topic)
	return err == nil && left == 0 && (least < 0 || least == written), err
}
