package kafka

import (
	"encoding/base64"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
)

// topicID is how the broker tells a topic from one of the same name made later.
type topicID [16]byte

// message makes a message of a record. Every record makes one: a tombstone, a
// record without key, headers without value.
func message(r *kgo.Record, id topicID, redelivered bool) *handler.Message {
	m := &handler.Message{
		Key:     r.Key,
		Payload: r.Value, // nil is a tombstone
		Origin: handler.Origin{
			Transport:   "kafka",
			Topic:       r.Topic,
			Partition:   r.Partition,
			Offset:      r.Offset,
			Position:    position(id, r.Partition, r.Offset),
			Redelivered: redelivered,
		},
	}
	if len(r.Headers) > 0 {
		m.Headers = make(handler.Headers, len(r.Headers))
		for i, h := range r.Headers {
			m.Headers[i] = handler.Header{Name: h.Key, Value: h.Value}
		}
	}
	if r.Timestamp.UnixMilli() >= 0 { // -1 is a record without one
		m.Origin.Time = r.Timestamp
	}
	m.ReadHeaders()
	return m
}

// position names a record's place. The topic id stands as Kafka's own tools
// print it.
func position(id topicID, partition int32, offset int64) string {
	if id == (topicID{}) {
		return ""
	}
	b := base64.RawURLEncoding.AppendEncode(make([]byte, 0, 48), id[:])
	b = strconv.AppendInt(append(b, '/'), int64(partition), 10)
	b = strconv.AppendInt(append(b, '/'), offset, 10)
	return string(b)
}
