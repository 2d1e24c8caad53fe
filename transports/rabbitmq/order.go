package rabbitmq

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/internal/jitter"
)

// KeepsOrder implements [handler.OrderedSource]: it says whether the config
// asks for a queue of one consumer. Whether the queue is one, Run looks.
func (s *Source) KeepsOrder() error {
	if s.config.inOrder() {
		return nil
	}
	return fmt.Errorf("consume queue %q in order: other consumers may take from it too: declare it with %s and set SourceConfig.SingleActiveConsumer, "+
		"or, if it is a classic queue, set SourceConfig.Exclusive", s.config.Queue, argSingleActive)
}

// consumeInOrder consumes in stints, each on a channel of its own, until the
// connection has ended or ctx has.
func (c *consumer) consumeInOrder(ctx context.Context, conn *connection) error {
	if err := c.warnOfLimits(ctx, conn); err != nil {
		return err
	}
	again := jitter.New(50*time.Millisecond, 5*time.Second) // a message that is always returned must not spin
	for ctx.Err() == nil {
		paused, turned := c.isPaused()
		var rest <-chan time.Time
		if paused {
			c.works(Paused)
		} else {
			turned = nil
			progress, returned, err := c.stint(ctx, conn)
			if err != nil {
				return err
			}
			if progress {
				again.Reset()
			}
			if !returned {
				continue
			}
			rest = time.After(again.NextBackOff())
		}
		select {
		case <-turned:
		case <-rest:
		case <-conn.lost:
			return fmt.Errorf("connection closed: %w", conn.err)
		case <-ctx.Done():
		}
	}
	return nil
}

// stint consumes until the source is paused, ctx ends, a delivery is given
// back, or the channel has ended. Then it hands nothing out any more, waits
// until nothing is out, and closes the channel.
//
// That keeps the order of what goes back. A quorum queue puts what is requeued
// behind what was requeued before, whatever came first; both kinds may send
// later messages in between; and if the consumer were cancelled first, the next
// one would be sent later messages while earlier ones are out here. Only with
// the channel do consumer and messages go in one step, the messages to where
// they were.
func (c *consumer) stint(ctx context.Context, conn *connection) (progress, returned bool, err error) {
	ch, err := c.open(conn)
	if err != nil {
		return false, false, err
	}
	back := newGuard(ch, c.config.Prefetch)
	defer func() {
		back.flush()
		_ = ch.do("close the channel", ch.Close)
	}()
	deliveries, err := c.register(ch)
	if err = c.refuseShared(ctx, conn, err); err != nil {
		return false, false, err
	}

	taking, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	revoked := make(chan struct{})
	var once sync.Once
	end := func(byReturn bool) {
		once.Do(func() {
			if returned = byReturn; ctx.Err() == nil { // in a drain the engine knows what it may still start
				close(revoked)
			}
			stopTaking()
		})
	}
	back.left = end
	c.works(Consuming)
	handedOut := make(chan struct{})
	go func() { // not in this goroutine: Deliver blocks while the engine is full
		defer close(handedOut)
		c.handOutInOrder(taking, deliveries, back, revoked)
	}()

	err = c.watch(ctx, ch, taking.Done())
	end(false)
	<-handedOut
	if err == nil {
		err = c.await(ctx, ch)
	}
	return back.progress.Load(), returned, err
}

// await waits until nothing is out, so that the channel may end.
func (c *consumer) await(ctx context.Context, ch *channel) error {
	switch paused, _ := c.isPaused(); {
	case ctx.Err() != nil:
		c.status.set(Draining)
	case paused:
		c.works(Paused)
	}
	select {
	case <-c.flight.over():
	case <-ctx.Done():
		c.status.set(Draining)
		c.drained()
	case <-ch.lost:
		return fmt.Errorf("channel closed: %w", ch.err)
	}
	return nil
}

// handOutInOrder hands out until taking ends. What it leaves, the broker has
// out until the channel ends.
func (c *consumer) handOutInOrder(taking context.Context, deliveries <-chan amqp.Delivery, back *guard, revoked <-chan struct{}) {
	fewest := int64(math.MaxInt64)
	for {
		select {
		case <-taking.Done():
			return
		case d, ok := <-deliveries:
			if !ok {
				return
			}
			fewest = c.compare(&d, fewest)
			c.handOut(taking, &d, back, revoked)
		}
	}
}

// compare looks for a message behind one that came after it. A quorum queue
// counts how often each was given back, and since what is out is always the
// front of the queue, one that was given back more often belongs before one
// that was so less often. It returns the lowest count so far.
func (c *consumer) compare(d *amqp.Delivery, fewest int64) int64 {
	count, _ := d.Headers["x-delivery-count"].(int64) // a classic queue has none
	if count > fewest {
		c.config.Logger.Error("a message came behind later ones: the queue has lost its order; "+
			"has somebody else taken from it, or a consumer with another prefetch?",
			slog.String("queue", c.config.Queue), slog.String("message_id", fmt.Sprintf("%.255q", d.MessageId)))
	}
	return min(count, fewest)
}
