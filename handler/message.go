package handler

import "time"

// Message is one thing that happened, as a producer told it. The same message
// may arrive many times; [Message.ID] is how the copies are recognised.
//
// The zero value of every field but ID means "not given".
type Message struct {
	// ID identifies the message among all messages of its consumer. It is the
	// producer's id, kept byte for byte; it may be any text of up to 255 bytes.
	ID string

	// Type says what happened, for example "order.paid". A [Mux] routes by it.
	Type string

	// Key is the ordering key: messages of one key are handled one after the
	// other. Nil and empty mean that the message waits for no other.
	Key []byte

	// Version is the sequence number of the aggregate the message is about.
	Version int64

	// CorrelationID names the conversation the message belongs to.
	CorrelationID string

	// CausationID is the id of the message that caused this one.
	CausationID string

	// Source names the producer.
	Source string

	// ContentType is the media type of Payload.
	ContentType string

	// OccurredAt is when it happened, as the producer says.
	OccurredAt time.Time

	// Payload is the body as it came. Nil is a tombstone where the source has
	// such a thing (Kafka), and otherwise the same as empty.
	Payload []byte

	// Stable is the part of Payload that is the same in every copy of the message,
	// where the source knows that a producer changes the rest when it sends again.
	// Copies are compared by it, and it is not stored. Nil: all of Payload.
	Stable []byte

	// Headers are all headers as they came, also those that fill the fields above.
	Headers Headers

	// Origin says where this delivery came from. It is zero for a message that
	// was handed to the engine directly.
	Origin Origin
}

// Origin is the place a delivery came from.
type Origin struct {
	// Transport is the kind of source: "kafka", "rabbitmq", "memory".
	Transport string

	// Topic is the topic or queue the message was taken from.
	Topic string

	// Partition and Offset are the message's place in its topic, where the
	// transport has such places. They mean nothing while Position is empty.
	Partition int32
	Offset    int64

	// Position names the message's one place in the source, the same for every
	// redelivery and never used again (Kafka: topic id, partition, offset).
	// Empty where the transport has none.
	Position string

	// Exchange and RoutingKey are how a RabbitMQ message reached its queue.
	Exchange   string
	RoutingKey string

	// Time is the broker's time of the message (Kafka: the record's
	// timestamp). Zero where the transport has none.
	Time time.Time

	// Redelivered reports that the transport says it delivered this before, or that
	// somebody may have had it in hand when a process died. Such a message is
	// journaled before it runs, so that one that kills its process is found.
	Redelivered bool
}

// Header is one name and value. A nil Value differs from an empty one: Kafka
// and AMQP both have headers without a value.
type Header struct {
	Name  string
	Value []byte

	// Tag is the AMQP 0.9.1 type of the value ('S' text, 'l' 64-bit integer,
	// 't' boolean, ...), 0 where there is none. Value then holds the text form.
	Tag byte
}

// Headers is a list of headers in the order they came, repeats kept.
type Headers []Header

// First returns the value of the first header called name. Names are compared
// exactly.
func (h Headers) First(name string) (value []byte, ok bool) {
	for i := range h {
		if h[i].Name == name {
			return h[i].Value, true
		}
	}
	return nil, false
}

// All returns the values of all headers called name, in order.
func (h Headers) All(name string) [][]byte {
	var values [][]byte
	for i := range h {
		if h[i].Name == name {
			values = append(values, h[i].Value)
		}
	}
	return values
}

// text is the value of the first header called name that has one.
func (h Headers) text(name string) string {
	for i := range h {
		if h[i].Name == name && len(h[i].Value) > 0 {
			return string(h[i].Value)
		}
	}
	return ""
}
