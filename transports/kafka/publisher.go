package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
)

var _ handler.OrderedPublisher = (*Publisher)(nil)

// Errors of [Publisher.Publish]. All are [handler.Permanent].
var (
	// ErrNoTopic: neither the publisher nor the client names a topic.
	ErrNoTopic = errors.New("no topic: name one with Publisher.To, Publisher.Route or kgo.DefaultProduceTopic")

	// ErrUnsafeClient: the client would take a record for sent that the
	// brokers can still lose, or write one twice.
	ErrUnsafeClient = errors.New("the client is not safe: build it without kgo.DisableIdempotentWrite and with kgo.AllISRAcks, as is the default")

	// ErrNoMessage: one of the messages is nil.
	ErrNoMessage = errors.New("message is nil")
)

// ErrBehindFailed is the error of a message that was not sent because an
// earlier one of its key and topic in the same call failed. It is not
// permanent.
var ErrBehindFailed = errors.New("an earlier message of its key failed")

// Publisher publishes messages with a client that the user built, owns and
// closes. Make one with [NewPublisher]. It is safe for concurrent use.
//
// A message becomes a record with its key, its payload as the value (nil is a
// tombstone) and its headers as [handler.Message.WriteHeaders] gives them.
type Publisher struct {
	client   *kgo.Client
	route    func(*handler.Message) string
	unsafe   bool
	safeSize int // bytes of a record that no client refuses
}

// NewPublisher returns a publisher to the client's kgo.DefaultProduceTopic. Use
// [Publisher.To] or [Publisher.Route] for other topics. The client must write
// idempotently with the acknowledgement of all in-sync replicas, as it does by
// default. For a relay make it with [WithinAttempt] too.
func NewPublisher(client *kgo.Client) *Publisher {
	topic, _ := client.OptValue(kgo.DefaultProduceTopic).(string)
	unsafe := client.OptValue(kgo.DisableIdempotentWrite) == true || client.OptValue(kgo.RequiredAcks) != kgo.AllISRAcks()
	limit, _ := client.OptValue(kgo.ProducerBatchMaxBytes).(int32)
	p := &Publisher{client: client, unsafe: unsafe, safeSize: int(limit)}
	return p.To(topic)
}

// To returns a publisher to topic.
func (p *Publisher) To(topic string) *Publisher {
	return p.Route(func(*handler.Message) string { return topic })
}

// Route returns a publisher to the topic that route names for each message. It
// must be safe for concurrent use and must not change the message.
func (p *Publisher) Route(route func(*handler.Message) string) *Publisher {
	return &Publisher{client: p.client, route: route, unsafe: p.unsafe, safeSize: p.safeSize}
}

// KeepsOrder implements [handler.OrderedPublisher].
func (p *Publisher) KeepsOrder() bool { return true }

// Publish sends msgs and waits for the brokers' confirmations until ctx ends.
// Messages of one key and topic are written in the order of msgs; those behind
// one that fails fail too ([ErrBehindFailed]).
//
// A message whose topic does not exist, that is too large, or that the brokers
// forbid or refuse has a permanent error. Every other error is one that
// [handler.IsUnavailable] recognises: the brokers are away, or the topic was
// deleted and made anew and the next attempt goes to the new one. When ctx ends
// first, the message may still be written.
func (p *Publisher) Publish(ctx context.Context, msgs []*handler.Message) []error {
	c := &publishing{Publisher: p, msgs: msgs, errs: make([]error, len(msgs)), failed: make(map[place]bool)}
	for next := 0; next < len(msgs); {
		next = c.round(ctx, next, len(msgs))
	}
	if len(c.anew) > 0 { // the client holds on to the id it saw first, for ever
		p.client.PurgeTopicsFromProducing(c.anew...)
	}
	return c.errs
}

// publishing is one call of Publish.
type publishing struct {
	*Publisher
	msgs   []*handler.Message
	errs   []error
	failed map[place]bool
	anew   []string // topics
}

// place is what keeps its order.
type place struct{ topic, key string }

// round sends those from next to end that can be sent together, and returns where
// to go on: behind a message that may turn out to be too large, since what follows
// must not pass it. The client makes batches, and brokers refuse a whole batch for
// the sake of one record: those of such a batch go once more, each alone.
func (c *publishing) round(ctx context.Context, next, end int) int {
	type result struct {
		i   int
		r   *kgo.Record
		err error
	}
	results := make(chan result, end-next) // room for all: late promises must not block the client
	sent := 0
	for risky := false; next < end && !risky; next++ {
		i, msg := next, c.msgs[next]
		r, err := c.record(msg)
		switch {
		case r != nil && len(r.Key) > 0 && c.failed[placeOf(r)]:
			err = published(msg, ErrBehindFailed)
		case err == nil && ctx.Err() != nil: // the client would fail the records of others with it
			err = published(msg, context.Cause(ctx))
		}
		if err != nil {
			c.fail(i, r, err)
			continue
		}
		c.errs[i] = errUnanswered
		sent++
		risky = sizeOf(r) > c.safeSize
		c.client.Produce(ctx, r, func(r *kgo.Record, err error) { results <- result{i, r, err} })
	}
	var doubted []int
	for range sent {
		select {
		case got := <-results:
			if sent > 1 && isOfOne(got.err) {
				doubted = append(doubted, got.i)
				continue
			}
			if errors.Is(got.err, kerr.UnknownTopicID) {
				c.anew = append(c.anew, got.r.Topic)
			}
			if c.errs[got.i] = nil; got.err != nil {
				c.fail(got.i, got.r, published(c.msgs[got.i], got.err))
			}
		case <-ctx.Done():
			for i, err := range c.errs {
				if err == errUnanswered { //nolint:errorlint // a mark of our own
					c.errs[i] = published(c.msgs[i], context.Cause(ctx))
				}
			}
			return next
		}
	}
	slices.Sort(doubted)
	for _, i := range doubted {
		c.round(ctx, i, i+1)
	}
	return next
}

func (c *publishing) fail(i int, r *kgo.Record, err error) {
	c.errs[i] = err
	if r != nil {
		c.failed[placeOf(r)] = true
	}
}

func placeOf(r *kgo.Record) place { return place{r.Topic, string(r.Key)} }

// overhead is more than a record, and a batch with one record, add to the bytes
// of key, value and headers; headerOverhead is what each header adds.
const (
	overhead       = 128
	headerOverhead = 10
)

// sizeOf is how many bytes a batch with one record takes at most.
func sizeOf(r *kgo.Record) int {
	size := overhead + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		size += headerOverhead + len(h.Key) + len(h.Value)
	}
	return size
}

// errUnanswered marks a message whose confirmation is still to come.
var errUnanswered = errors.New("unanswered")

func (p *Publisher) record(msg *handler.Message) (*kgo.Record, error) {
	if msg == nil {
		return nil, handler.Permanent(fmt.Errorf("publish to Kafka: %w", ErrNoMessage))
	}
	topic := p.route(msg)
	var err error
	switch {
	case p.unsafe:
		err = ErrUnsafeClient
	case topic == "":
		err = ErrNoTopic
	}
	if err != nil {
		return nil, handler.Permanent(fmt.Errorf("publish message %.255q to Kafka: %w", msg.ID, err))
	}
	r := &kgo.Record{Topic: topic, Value: msg.Payload}
	if len(msg.Key) > 0 { // an empty key would put all such messages into one partition
		r.Key = msg.Key
	}
	headers := msg.WriteHeaders()
	r.Headers = make([]kgo.RecordHeader, len(headers))
	for i, h := range headers {
		r.Headers[i] = kgo.RecordHeader{Key: h.Name, Value: h.Value}
	}
	return r, nil
}

// published makes the result of one message of the client's error.
func published(msg *handler.Message, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("publish message %.255q to Kafka: %w", msg.ID, err)
	if isPermanent(err) {
		return handler.Permanent(err)
	}
	return handler.Unavailable(err)
}

// isOfOne reports whether err may be about another record of the same batch.
func isOfOne(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge) ||
		errors.Is(err, kerr.InvalidRecord) || errors.Is(err, kerr.InvalidTimestamp)
}

// isPermanent reports whether err is about the message or about what the
// client may do. The client has tried an unknown topic several times before it
// says so. All other errors say that the brokers do not do their part: the
// client has tried what can be tried. An unknown topic id is one of them: the
// topic was made anew, and the next attempt goes to the new one.
func isPermanent(err error) bool {
	for _, permanent := range [...]*kerr.Error{
		kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp, kerr.PolicyViolation,
		kerr.UnknownTopicOrPartition, kerr.InvalidTopicException,
		kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.TransactionalIDAuthorizationFailed,
		kerr.UnsupportedForMessageFormat, kerr.UnsupportedCompressionType,
	} {
		if errors.Is(err, permanent) {
			return true
		}
	}
	return false
}
