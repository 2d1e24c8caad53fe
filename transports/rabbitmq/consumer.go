package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/handler"
)

// errCancelled is why a channel is given up whose consumer the broker cancelled.
var errCancelled = errors.New("the broker cancelled the consumer (was the queue deleted?)")

// consumer is one run of a [Source].
type consumer struct {
	*Source
	config  SourceConfig
	sink    handler.Sink
	works   func(State)
	drainBy time.Time

	inspected bool // the queue's limits were looked at
	shared    look // whether others may take from the queue
}

// consume opens a channel, declares what was asked for, and consumes on it,
// pausing and resuming, until the channel has ended or ctx has. Then it drains.
func (c *consumer) consume(ctx context.Context, conn *connection) error {
	if c.config.inOrder() {
		return c.consumeInOrder(ctx, conn)
	}
	ch, err := c.open(conn)
	if err != nil {
		return err
	}
	back := newGuard(ch, c.config.Prefetch)
	defer func() {
		back.flush()
		_ = ch.do("close the channel", ch.Close)
	}()
	if err := c.warnOfLimits(ctx, conn); err != nil {
		return err
	}

	for {
		paused, turned := c.isPaused()
		if !paused {
			if err := c.subscribe(ctx, ch, back); err != nil {
				return err
			}
		} else {
			c.works(Paused)
			select {
			case <-turned:
			case <-ch.lost:
				return fmt.Errorf("channel closed: %w", ch.err)
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			// The channel stays open until the last acknowledgement; if it does
			// not, there is nothing to keep it for, but the wait is the same.
			c.drained()
			return nil
		}
	}
}

// open opens a channel that is ready to consume.
func (c *consumer) open(conn *connection) (*channel, error) {
	ch, err := conn.channel()
	if err != nil {
		return nil, err
	}
	if c.config.Declare != nil {
		err = ch.do("declare what the consumer needs", func() error { return c.config.Declare(ch.Channel) })
	}
	if err == nil {
		err = ch.do("set the prefetch", func() error { return ch.Qos(c.config.Prefetch, 0, false) })
	}
	if err != nil {
		_ = ch.do("close the channel", ch.Close)
		return nil, err
	}
	return ch, nil
}

// subscribe consumes until the source is paused (nil), ctx ends (nil), or the
// consumer or its channel has ended.
func (c *consumer) subscribe(ctx context.Context, ch *channel, back *guard) error {
	deliveries, err := c.register(ch)
	if err != nil {
		return err
	}
	c.works(Consuming)

	revoked := make(chan struct{})
	taking, stopTaking := context.WithCancel(ctx)
	handedOut := make(chan struct{})
	go func() { // not in this goroutine: Deliver blocks while the engine is full
		defer close(handedOut)
		for d := range deliveries {
			c.handOut(taking, &d, back, revoked)
		}
	}()
	// The library closes deliveries once the consumer or the channel has ended.
	defer func() { <-handedOut }()
	defer stopTaking()

	err = c.watch(ctx, ch, nil)
	if ctx.Err() == nil {
		close(revoked)
	} else {
		c.status.set(Draining)
	}
	stopTaking()
	if cancelErr := ch.do("cancel the consumer", func() error { return ch.Cancel(c.config.ConsumerTag, false) }); err == nil && ctx.Err() == nil {
		err = cancelErr
	}
	return err
}

// register makes the broker send deliveries.
func (c *consumer) register(ch *channel) (deliveries <-chan amqp.Delivery, err error) {
	err = ch.do("consume", func() (err error) {
		deliveries, err = ch.Consume(c.config.Queue, c.config.ConsumerTag, false, c.config.Exclusive, false, false, nil)
		return err
	})
	if err != nil && c.config.Exclusive && hasCode(err, amqp.AccessRefused) {
		// Another consumer has the queue; it will go some day. The broker says
		// the same of a missing permission, hence %v: no refusal any more.
		return nil, fmt.Errorf("%w: %v", errOccupied, err) //nolint:errorlint // on purpose
	}
	return deliveries, err
}

// watch waits for the end of a subscription, or until ended is closed.
func (c *consumer) watch(ctx context.Context, ch *channel, ended <-chan struct{}) error {
	for {
		paused, turned := c.isPaused()
		if paused {
			return nil
		}
		select {
		case <-turned: // and perhaps back again already
		case <-ctx.Done():
			return nil
		case <-ended:
			return nil
		case <-ch.lost:
			return fmt.Errorf("channel closed: %w", ch.err)
		case <-ch.cancelled:
			return errCancelled
		}
	}
}

// handOut gives one delivery to the engine, or back to the broker when the
// engine does not take it.
func (c *consumer) handOut(taking context.Context, d *amqp.Delivery, back *guard, revoked <-chan struct{}) {
	out := &delivery{flight: &c.flight, back: back, tag: d.DeliveryTag}
	back.take(out)
	// Asked here too: what arrives after Pause has returned must not be handed
	// out while the goroutine that cancels the consumer is still waking up.
	if paused, _ := c.isPaused(); paused || taking.Err() != nil {
		back.requeue(out)
		return
	}
	c.flight.add()
	err := c.sink.Deliver(taking, &handler.Delivery{
		Message:  message(d, c.config.Queue),
		Settled:  out.settled,
		Returned: out.returned,
		Revoked:  revoked,
	})
	switch {
	case err == nil: // the engine's, and perhaps settled already
	case taking.Err() != nil:
		out.end(back.requeue)
	default:
		out.returned(err)
	}
}
