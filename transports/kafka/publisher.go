package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
)

var _ handler.Publisher = (*Publisher)(nil)

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

// Publisher publishes messages with a client that the user built, owns and
// closes. Make one with [NewPublisher]. It is safe for concurrent use.
//
// A message becomes a record with its key, its payload as the value (nil is a
// tombstone) and its headers as [handler.Message.WriteHeaders] gives them.
type Publisher struct {
	client *kgo.Client
	route  func(*handler.Message) string
	unsafe bool
}

// NewPublisher returns a publisher to the client's kgo.DefaultProduceTopic. Use
// [Publisher.To] or [Publisher.Route] for other topics. The client must write
// idempotently with the acknowledgement of all in-sync replicas, as it does by
// default.
func NewPublisher(client *kgo.Client) *Publisher {
	topic, _ := client.OptValue(kgo.DefaultProduceTopic).(string)
	unsafe := client.OptValue(kgo.DisableIdempotentWrite) == true || client.OptValue(kgo.RequiredAcks) != kgo.AllISRAcks()
	p := &Publisher{client: client, unsafe: unsafe}
	return p.To(topic)
}

// To returns a publisher to topic.
func (p *Publisher) To(topic string) *Publisher {
	return p.Route(func(*handler.Message) string { return topic })
}

// Route returns a publisher to the topic that route names for each message. It
// must be safe for concurrent use and must not change the message.
func (p *Publisher) Route(route func(*handler.Message) string) *Publisher {
	return &Publisher{client: p.client, route: route, unsafe: p.unsafe}
}

// Publish sends msgs and waits for the brokers' confirmations until ctx ends.
// Messages of one key and topic are written in the order of msgs.
//
// A message whose topic does not exist, that is too large, or that the brokers
// forbid or refuse has a permanent error. A topic that was deleted and made anew
// costs an error that is not permanent: the next attempt goes to the new one. When ctx ends first, the message may
// still be written.
func (p *Publisher) Publish(ctx context.Context, msgs []*handler.Message) []error {
	type result struct {
		i     int
		topic string
		err   error
	}
	errs := make([]error, len(msgs))
	results := make(chan result, len(msgs)) // room for all: late promises must not block the client
	waiting := 0
	var anew []string
	for i, msg := range msgs {
		r, err := p.record(msg)
		if err == nil && ctx.Err() != nil { // the client would fail the records of others with it
			err = published(msg, context.Cause(ctx))
		}
		if err != nil {
			errs[i] = err
			continue
		}
		errs[i] = errUnanswered
		waiting++
		p.client.Produce(ctx, r, func(r *kgo.Record, err error) { results <- result{i, r.Topic, err} })
	}
	for ; waiting > 0; waiting-- {
		select {
		case r := <-results:
			errs[r.i] = published(msgs[r.i], r.err)
			if errors.Is(r.err, kerr.UnknownTopicID) {
				anew = append(anew, r.topic)
			}
		case <-ctx.Done():
			for i, err := range errs {
				if err == errUnanswered { //nolint:errorlint // a mark of our own
					errs[i] = published(msgs[i], context.Cause(ctx))
				}
			}
			return errs
		}
	}
	if len(anew) > 0 { // the client holds on to the id it saw first, for ever
		p.client.PurgeTopicsFromProducing(anew...)
	}
	return errs
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
	for _, h := range msg.WriteHeaders() {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
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
	return err
}

// isPermanent reports whether err is about the message or about what the
// client may do. The client has tried an unknown topic several times before it
// says so. An unknown topic id is no such error: the topic was made anew, and the
// next attempt goes to the new one.
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
