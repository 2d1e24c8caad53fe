package rabbitmq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/handler"
)

// otherProperties is room for all properties of a message but its headers: six
// short strings and some numbers.
const otherProperties = 2_048

var errConnectionLost = errors.New("the connection ended before the broker confirmed it")

// run starts the publishing goroutine. Closing ends its wait for a connection;
// what is out on a channel has until p.cancel is called.
func (p *Publisher) run() {
	serving, stop := context.WithCancel(context.Background())
	working, cancel := context.WithCancel(context.Background())
	p.stop, p.cancel = stop, cancel
	go func() {
		defer close(p.done)
		defer cancel()
		defer stop()
		defer p.status.set(Stopped)
		supervisor := newSupervisor(p.config.link(), &p.status, nil) // no failure is final: there is no Run to end
		_ = supervisor.run(serving, func(_ context.Context, conn *connection) error {
			defer context.AfterFunc(working, conn.kill)()
			return p.publish(working, conn, func(state State) { supervisor.works(working, state) })
		})
	}()
}

// window is the messages that are out on one channel.
type window struct {
	*Publisher
	ch      *channel
	returns chan amqp.Return
	pending []*sentMessage  // in the order they were sent
	since   time.Time       // the last time something moved
	reached map[string]bool // exchanges that are there
}

// sentMessage is a message that waits for its confirm.
type sentMessage struct {
	*outgoing
	confirm  *amqp.DeferredConfirmation
	returned string // the broker's reason; empty while it has not come back
}

// publish sends what is offered on one channel until the channel has ended, the
// publisher is closed or ctx ends. It alone touches the channel.
func (p *Publisher) publish(ctx context.Context, conn *connection, works func(State)) error {
	ch, err := conn.channel()
	if err != nil {
		return err
	}
	// The library's reader must never wait for room: at most a window is out,
	// and each message comes back once at most.
	w := &window{Publisher: p, ch: ch, returns: ch.NotifyReturn(make(chan amqp.Return, p.config.Window)), since: time.Now(), reached: map[string]bool{}}
	defer w.abandon()
	defer func() { _ = ch.do("close the channel", ch.Close) }()
	if p.config.Declare != nil {
		if err := ch.do("declare what the publisher needs", func() error { return p.config.Declare(ch.Channel) }); err != nil {
			return err
		}
	}
	if err := ch.do("switch to confirms", func() error { return ch.Confirm(false) }); err != nil {
		return err
	}

	stalled := time.NewTicker(p.config.RequestTimeout/4 + 1)
	defer stalled.Stop()
	closing := p.closing
	for {
		reason := conn.blocked.Load()
		offers := p.offers
		if reason != nil || len(w.pending) >= p.config.Window || closing == nil {
			offers = nil
		}
		var confirmed <-chan struct{}
		if len(w.pending) > 0 {
			confirmed = w.pending[0].confirm.Done()
		}
		works(w.state(reason))

		select {
		case out := <-offers:
			if err := w.send(out); err != nil {
				return err
			}
		case <-confirmed:
			w.settle()
		case r, open := <-w.returns:
			w.note(r, open)
		case <-conn.unblocks:
			w.since = time.Now()
			w.logBlocked(ctx, conn.blocked.Load())
		case <-stalled.C:
			if reason == nil && len(w.pending) > 0 && time.Since(w.since) > p.config.RequestTimeout {
				conn.kill()
				<-ch.lost
				return fmt.Errorf("wait for confirms: none of %d within %s, connection given up", len(w.pending), p.config.RequestTimeout)
			}
		case <-closing:
			closing = nil
		case <-ch.lost:
			return fmt.Errorf("channel closed: %w", ch.err)
		case <-ctx.Done():
			return nil
		}
		if closing == nil && len(w.pending) == 0 {
			return nil
		}
	}
}

func (w *window) state(blocked *string) State {
	if blocked != nil {
		return Blocked
	}
	return Publishing
}

func (w *window) logBlocked(ctx context.Context, reason *string) {
	if reason != nil {
		w.config.Logger.LogAttrs(ctx, slog.LevelWarn, "rabbitmq blocks publishers, waiting", slog.String("reason", *reason))
		return
	}
	w.config.Logger.LogAttrs(ctx, slog.LevelInfo, "rabbitmq takes messages again")
}

// send sends one message. An error is the end of the channel.
func (w *window) send(out *outgoing) error {
	// Headers stand in one frame; a larger one ends the connection.
	limit := w.ch.conn.amqp.Config.FrameSize - otherProperties
	if size := encodedSize(out.message.Headers); limit > 0 && size > limit {
		out.result <- handler.Permanent(fmt.Errorf("headers of %d bytes: the broker takes %d", size, limit))
		return nil
	}
	switch err := w.reach(out.exchange); {
	case errors.Is(err, ErrExchangeRefused):
		out.result <- err
		return nil
	case err != nil:
		out.result <- handler.Unavailable(err)
		return err
	}
	if len(w.pending) == 0 {
		w.since = time.Now()
	}
	confirm, err := w.ch.PublishWithDeferredConfirm(out.exchange, out.key, true, false, out.message)
	if err != nil {
		out.result <- handler.Unavailable(fmt.Errorf("%w: %w", errConnectionLost, err))
		return fmt.Errorf("send a message: %w", err)
	}
	w.flight.add()
	w.pending = append(w.pending, &sentMessage{outgoing: out, confirm: confirm})
	return nil
}

// settle tells the sender of the oldest message how it went. The broker sends
// back what it cannot route before it confirms it, and one goroutine of the
// library passes on both: what came back is in w.returns by now.
func (w *window) settle() {
	w.since = time.Now()
	w.collect()
	s := w.pending[0]
	w.pending[0] = nil
	w.pending = w.pending[1:]
	w.finish(s)
}

func (w *window) finish(s *sentMessage) {
	defer w.flight.done()
	switch {
	case s.returned != "":
		s.result <- fmt.Errorf("%w (the broker says %s): add the binding or correct the routing key", ErrUnroutable, s.returned)
	case s.confirm.Acked():
		s.result <- nil
	case w.ch.IsClosed(): // the library calls every message that was out refused
		<-w.ch.lost
		if refuses(w.ch.err, s.exchange) {
			s.result <- w.refuse(s.exchange, w.ch.err)
			return
		}
		s.result <- handler.Unavailable(fmt.Errorf("%w: %w", errConnectionLost, w.ch.err))
	default:
		s.result <- ErrNotConfirmed
	}
}

// collect takes what has come back so far.
func (w *window) collect() {
	for {
		select {
		case r, open := <-w.returns:
			w.note(r, open)
		default:
			return
		}
	}
}

// note notes that a message came back. The broker returns in the order of
// sending, so of equal messages the first that has not come back is the one.
func (w *window) note(r amqp.Return, open bool) {
	if !open {
		w.returns = nil // a nil channel is never ready
		return
	}
	for _, s := range w.pending {
		if s.returned == "" && s.exchange == r.Exchange && s.key == r.RoutingKey && s.message.MessageId == r.MessageId && bytes.Equal(s.message.Body, r.Body) {
			s.returned = fmt.Sprintf("%d %s", r.ReplyCode, r.ReplyText)
			return
		}
	}
}

// abandon ends what is still out after the channel has been closed: it is
// confirmed, has come back, or nobody knows.
func (w *window) abandon() {
	<-w.ch.lost
	for w.returns != nil {
		r, open := <-w.returns
		w.note(r, open)
	}
	for _, s := range w.pending {
		w.finish(s)
	}
}
