package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/handler"
)

var _ handler.Publisher = (*Publisher)(nil)

// Publisher publishes to one exchange, or to the one of each message, with
// confirms. Make one with [NewPublisher]. It connects at the first
// [Publisher.Publish] and keeps its connection until [Publisher.Close].
type Publisher struct {
	config  PublisherConfig
	invalid error
	status  status
	flight  flight

	// offers is where the publishing goroutine takes messages from. It has no
	// buffer: what was not taken was not sent.
	offers chan *outgoing

	refusals map[string]refusal // by exchange; the publishing goroutine's own

	start   sync.Once
	stop    context.CancelFunc // ends the wait for a connection; set by start
	cancel  context.CancelFunc // ends everything; set by start
	done    chan struct{}      // closed when the publishing goroutine has ended
	closing chan struct{}      // closed by Close
	close   sync.Once
}

// outgoing is one message on its way.
type outgoing struct {
	exchange string
	key      string
	message  amqp.Publishing
	result   chan error // has room for the one result: its reader may have gone
}

// NewPublisher returns a publisher for config. It does no I/O: an impossible
// config is reported by [Publisher.Publish].
func NewPublisher(config PublisherConfig) *Publisher {
	config, err := config.withDefaults()
	return &Publisher{
		config: config, invalid: err,
		refusals: map[string]refusal{},
		offers:   make(chan *outgoing), done: make(chan struct{}), closing: make(chan struct{}),
	}
}

// Publish implements [handler.Publisher]. Messages are sent in order and
// confirmed by the broker in any. While there is no connection, and while the
// broker blocks publishers, it waits until ctx ends.
//
// A message that AMQP or the broker cannot carry fails permanently: a payload
// above [PublisherConfig.MaxPayload], an exchange, a routing key or a header name
// of more than 255 bytes, headers that do not fit into one frame. One that nobody
// is bound for ([ErrUnroutable]), or whose exchange the broker refuses
// ([ErrExchangeRefused]), fails alone: others pass. Headers CC and BCC are not
// sent. An error that [handler.IsUnavailable] recognises says that the
// broker is away, not that it minds the message.
func (p *Publisher) Publish(ctx context.Context, msgs []*handler.Message) []error {
	errs := make([]error, len(msgs))
	sent := make([]*outgoing, len(msgs))
	for i, msg := range msgs {
		sent[i], errs[i] = p.send(ctx, msg)
	}
	for i, out := range sent {
		if out == nil {
			continue
		}
		select {
		case errs[i] = <-out.result:
		case <-ctx.Done():
			select {
			case errs[i] = <-out.result: // both were there
			default:
				errs[i] = handler.Unavailable(fmt.Errorf("wait for the confirm of the broker%s: %w", p.lastError(), context.Cause(ctx)))
			}
		}
		if errs[i] != nil {
			errs[i] = fmt.Errorf("publish message %.255q to exchange %q with routing key %q: %w", msgs[i].ID, out.exchange, out.key, errs[i])
		}
	}
	return errs
}

// send hands msg to the publishing goroutine.
func (p *Publisher) send(ctx context.Context, msg *handler.Message) (*outgoing, error) {
	out, err := p.prepare(msg)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		p.start.Do(p.run)
		select {
		case p.offers <- out:
			return out, nil
		case <-p.closing:
			err = ErrPublisherClosed
		case <-ctx.Done():
			err = handler.Unavailable(fmt.Errorf("wait for the broker%s: %w", p.lastError(), context.Cause(ctx)))
		}
	}
	switch {
	case msg == nil:
		return nil, fmt.Errorf("publish to RabbitMQ: %w", err)
	case out == nil:
		return nil, fmt.Errorf("publish message %.255q to RabbitMQ: %w", msg.ID, err)
	}
	return nil, fmt.Errorf("publish message %.255q to exchange %q: %w", msg.ID, out.exchange, err)
}

// prepare encodes msg and refuses what would end the channel or the connection,
// and with it the messages of others.
func (p *Publisher) prepare(msg *handler.Message) (*outgoing, error) {
	if p.invalid != nil {
		return nil, fmt.Errorf("rabbitmq publisher: %w", p.invalid)
	}
	if msg == nil {
		return nil, handler.Permanent(errors.New("message is nil"))
	}
	if size := len(msg.Payload); size > p.config.MaxPayload {
		return nil, handler.Permanent(fmt.Errorf("%w: %d bytes, limit %d", handler.ErrPayloadTooLarge, size, p.config.MaxPayload))
	}
	exchange, key := p.config.ExchangeOf(msg), p.config.RoutingKey(msg)
	if err := errors.Join(checkLength("exchange", exchange), checkLength("routing key", key)); err != nil {
		return nil, handler.Permanent(err)
	}
	encoded, err := publishing(msg)
	if err != nil {
		return nil, handler.Permanent(err)
	}
	return &outgoing{exchange: exchange, key: key, message: encoded, result: make(chan error, 1)}, nil
}

// Close takes no more messages, waits until those that are out are confirmed
// or ctx ends, and closes the connection. What is not confirmed by then has
// failed, and the broker may have it all the same.
func (p *Publisher) Close(ctx context.Context) error {
	p.close.Do(func() { close(p.closing) })
	p.start.Do(func() { // never used: there is nothing to end
		p.stop, p.cancel = func() {}, func() {}
		close(p.done)
	})
	p.stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		left := p.flight.count()
		p.cancel()
		<-p.done
		return fmt.Errorf("close the publisher to RabbitMQ: %d messages were not confirmed: %w", left, context.Cause(ctx))
	}
}

// Stats returns a snapshot.
func (p *Publisher) Stats() Stats {
	stats := p.status.snapshot()
	stats.InFlight = p.flight.count()
	return stats
}

// lastError says why there may be nobody to publish to.
func (p *Publisher) lastError() string {
	switch stats := p.status.snapshot(); {
	case stats.State == Blocked:
		return " (it blocks publishers: memory or disk alarm)"
	case stats.State == Connecting && stats.LastError != nil:
		return fmt.Sprintf(" (no connection; %s)", stats.LastError)
	default:
		return ""
	}
}
