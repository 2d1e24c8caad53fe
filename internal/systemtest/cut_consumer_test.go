package systemtest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/faultproxy"
)

// cutConsumer is one consumer of the sweep.
type cutConsumer struct {
	*cutSweep
	name  string
	point cutPoint
	place cutPlace
	proxy *faultproxy.Proxy

	mu   sync.Mutex     // guards seen
	seen map[string]int // frames of the point's side, from the ambush to the stop or the end
	runs int
}

func (s *cutSweep) consumer(t *testing.T, name string, p cutPoint) *cutConsumer {
	t.Helper()
	return &cutConsumer{
		cutSweep: s, name: name, point: p, place: s.place(t, name),
		proxy: faultproxy.NewFramed(t, s.addr, s.framing), seen: map[string]int{},
	}
}

// live consumes until nothing is left. It returns what was not as it must be.
func (c *cutConsumer) live(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	release := make(chan struct{})
	in, err := inbox.New(c.pool, c.name, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if c.point.late {
			<-release
		}
		_, err := tx.Exec(ctx, `INSERT INTO effects (name, key, version) VALUES ($1, $2, 0)`, c.name, msg.ID)
		return err
	}, inbox.Config{Schema: c.db.Schema, Logger: c.db.log.logger(), Workers: cutWorkers})
	if err != nil {
		return err
	}

	if c.point.late {
		err = c.runAndStop(ctx, in, release)
	} else {
		err = c.runToTheEnd(ctx, in)
	}
	notBegun := 0
	if c.point.late {
		notBegun = cutMessages - cutWorkers
	}
	for left := 1; err == nil && left > 0; {
		left, err = c.waiting(ctx)
		if err == nil && c.commits && c.runs == 1 && left != notBegun {
			return fmt.Errorf("%d messages are not committed, %d were not begun", left, notBegun)
		}
		if err == nil && left > 0 {
			err = c.consume(ctx, in, func(tp *tap) error {
				return reach(ctx, "the rest settled", func() bool { return tp.passed().settled >= left })
			})
		}
	}
	if err != nil {
		return err
	}
	return c.check(ctx, in)
}

// waiting returns how many messages the broker has yet. It puts back what a
// broken connection held a moment after it broke, so what was not handled is
// waited for.
func (c *cutConsumer) waiting(ctx context.Context) (left int, err error) {
	if err := c.gone(ctx); err != nil {
		return 0, err
	}
	var handled int
	errReach := reach(ctx, "messages that were lost", func() bool {
		if left, err = c.place.left(); err == nil && left == 0 {
			err = c.pool.QueryRow(ctx, `SELECT count(DISTINCT key) FROM effects WHERE name = $1`, c.name).Scan(&handled)
		}
		return err != nil || left > 0 || handled == cutMessages
	})
	return left, errors.Join(err, errReach)
}

// gone waits until nothing is left of the consumer's connections.
func (c *cutConsumer) gone(ctx context.Context) error {
	if err := reach(ctx, "no connection left open", func() bool { return c.proxy.Links() == 0 }); err != nil {
		return err
	}
	return reach(ctx, "no consumer left at the broker", func() bool {
		gone, err := c.place.abandoned()
		return err == nil && gone
	})
}

// runToTheEnd lies in wait from the beginning, and stops when all messages are
// settled.
func (c *cutConsumer) runToTheEnd(ctx context.Context, in *inbox.Inbox) error {
	ambush := c.lie()
	return c.consume(ctx, in, func(tp *tap) error {
		err := reach(ctx, "all settled", func() bool { return tp.settledNames() == cutMessages })
		if err == nil && c.point.kind != "" {
			return closed(ctx, "the cut", ambush.Sprung())
		}
		if err == nil {
			err = reach(ctx, "all kinds of frames", func() bool { return c.saw(c.running[c.point.side]) })
			c.proxy.Lift()
		}
		return err
	})
}

// runAndStop lies in wait when it stops a consumer that has all messages and
// has begun with some.
func (c *cutConsumer) runAndStop(ctx context.Context, in *inbox.Inbox, release chan struct{}) error {
	var ambush *faultproxy.Ambush
	err := c.consume(ctx, in, func(tp *tap) error {
		err := reach(ctx, "all in flight", func() bool { return in.Stats().Running == cutWorkers && tp.inFlight() == cutMessages })
		ambush = c.lie()
		go func() {
			defer close(release)
			_ = reach(ctx, "what was not begun goes back first", func() bool { return tp.passed().returned > 0 })
		}()
		return err
	})
	if err == nil && c.point.kind != "" {
		err = closed(ctx, "the cut", ambush.Sprung())
	}
	c.proxy.Lift()
	return err
}

// consume runs the inbox until the given function returns.
func (c *cutConsumer) consume(ctx context.Context, in *inbox.Inbox, until func(*tap) error) error {
	c.runs++
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	tp := newTap(c.place.source(c.proxy.Addr()))
	ended := make(chan error, 1)
	go func() { ended <- in.Run(ctx, tp) }()
	err := until(tp)
	stop()
	return errors.Join(err, <-ended)
}

func (c *cutConsumer) lie() *faultproxy.Ambush {
	return c.proxy.Ambush(c.point.side, c.point.n, c.point.moment, func(frame []byte) bool {
		kind := c.kind(frame)
		if kind == "" {
			return false
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen[kind]++
		return kind == c.point.kind
	})
}

func (c *cutConsumer) saw(kinds []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range kinds {
		if c.seen[kind] == 0 {
			return false
		}
	}
	return true
}

// check says what is not as it must be in the end.
func (c *cutConsumer) check(ctx context.Context, in *inbox.Inbox) error {
	var effects, messages int
	err := c.pool.QueryRow(ctx, `SELECT count(*), count(DISTINCT key) FROM effects WHERE name = $1`, c.name).Scan(&effects, &messages)
	switch {
	case err != nil:
		return err
	case messages != cutMessages:
		return fmt.Errorf("%d messages were lost", cutMessages-messages)
	case effects != messages:
		return fmt.Errorf("%d effects were doubled", effects-messages)
	case in.Stats().FailedAttempts != 0 || in.Stats().Dead != 0:
		return fmt.Errorf("attempts were spent: %+v", in.Stats())
	}
	return nil
}

// settledNames is how many messages were settled, however often.
func (tp *tap) settledNames() int {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return len(tp.settled)
}

// reach is await where there is no test to fail.
func reach(ctx context.Context, what string, reached func() bool) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for !reached() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("not reached: %s", what)
		}
	}
	return nil
}

func closed(ctx context.Context, what string, done <-chan struct{}) error {
	return reach(ctx, what, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}
