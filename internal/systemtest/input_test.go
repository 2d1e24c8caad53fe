package systemtest_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// Whatever a producer sends, each message ends in one of two places: it took
// effect, or it is in front of a person as it came. Nothing is lost, nothing
// loops, nothing panics.
func TestInput_ThroughBrokers(t *testing.T) {
	large := append(append([]byte(`{"blob":"`), bytes.Repeat([]byte("x"), 10<<20)...), `"}`...)
	tests := []struct {
		name    string
		message handler.Message
		reason  dlq.Reason // empty: it takes effect
		says    string     // in the dead letter
	}{
		{name: "EmptyID", message: handler.Message{}, reason: dlq.BadID, says: "it is empty"},
		{name: "BlankID", message: handler.Message{ID: " \t "}, reason: dlq.BadID, says: "only white space"},
		{name: "LongestID", message: handler.Message{ID: strings.Repeat("i", 255)}},
		{name: "OverLongID", message: handler.Message{ID: strings.Repeat("i", 256)}, reason: dlq.BadID, says: "256 bytes, at most 255"},
		{name: "HugeID", message: handler.Message{ID: strings.Repeat("i", 10<<10)}, reason: dlq.BadID, says: "10240 bytes, at most 255"},
		{name: "NULID", message: handler.Message{ID: "a\x00b"}, reason: dlq.BadID, says: "NUL"},
		{name: "NotUTF8ID", message: handler.Message{ID: "a\xff\xfe"}, reason: dlq.BadID, says: "not UTF-8"},

		{name: "EmptyPayload", message: handler.Message{ID: "empty payload", Payload: []byte{}}, reason: dlq.Undecodable, says: "0 bytes of JSON"},
		{name: "LargePayload", message: handler.Message{ID: "large payload", Payload: large}},
		{name: "LargeUndecodable", message: handler.Message{ID: "large undecodable", Payload: large[:10<<20]}, reason: dlq.Undecodable, says: "not JSON at byte"},
		{name: "OverLimit", message: handler.Message{ID: "over limit", Payload: make([]byte, 16<<20+1)}, reason: dlq.TooLarge, says: "limit 16777216"},
		{name: "Undecodable", message: handler.Message{ID: "undecodable", Payload: notJSON}, reason: dlq.Undecodable, says: "not JSON at byte 12"},
		{name: "OtherJSON", message: handler.Message{ID: "other", Payload: []byte(`[1]`)}, reason: dlq.Undecodable, says: "a JSON array where"},

		{name: "RepeatedHeaders", message: handler.Message{ID: "repeated", Headers: handler.Headers{{Name: "hop", Value: []byte("b")}, {Name: "hop", Value: []byte("a")}}}},
		{name: "NilHeader", message: handler.Message{ID: "nil header", Headers: handler.Headers{{Name: "nil"}}}},
		{name: "EmptyHeader", message: handler.Message{ID: "empty header", Headers: handler.Headers{{Name: "empty", Value: []byte{}}}}},
		{name: "BinaryHeader", message: handler.Message{ID: "binary header", Headers: handler.Headers{{Name: "binary", Value: []byte{0, 1, 0xfe, 0xff}}}}},

		{name: "UnknownType", message: handler.Message{ID: "unknown", Type: "order.refunded"}, reason: dlq.UnknownType, says: `"order.refunded"`},
		{name: "HugeType", message: handler.Message{ID: "huge type", Type: strings.Repeat("t", 10<<10)}, reason: dlq.UnknownType, says: "unknown message type"},
		{name: "TypeThatIsNoText", message: handler.Message{ID: "type no text", Type: "\x00\xff"}, reason: dlq.UnknownType, says: `"\x00\xff"`},

		{name: "GoodOneAtTheEnd", message: handler.Message{ID: "good"}},
	}
	eachBroker(t, func(t *testing.T, kind string) {
		b := setup(t, kind, place{})
		sent := make([]*handler.Message, len(tests))
		var good []string
		for i, tt := range tests {
			msg := tt.message
			if msg.Type == "" {
				msg.Type = "order.paid"
			}
			if msg.Payload == nil {
				msg.Payload = []byte(`{"row":"` + tt.name + `"}`)
			}
			msg.Headers = append(handler.Headers{{Name: rowHeader, Value: []byte(tt.name)}}, msg.Headers...)
			sent[i] = &msg
			if tt.reason == "" {
				good = append(good, tt.name)
			}
		}
		send(t, b.broker, sent...)
		seen := &sightings{next: routes(), headers: map[string]handler.Headers{}}

		r := b.start(t, seen.handle, inbox.Config{})
		r.awaitSettled(t, len(tests))
		r.finish(t)

		require.Equal(t, passed{delivered: len(tests), settled: len(tests)}, r.passed(), "each came once")
		require.Zero(t, b.broker.left(t))
		b.requireOneEffectEach(t, good)
		letters := b.letters(t)
		require.Len(t, letters, len(tests)-len(good))
		for i, tt := range tests {
			if tt.reason == "" {
				for _, h := range tt.message.Headers {
					want, got := sent[i].Headers.All(h.Name), seen.headers[tt.name].All(h.Name)
					require.Equal(t, want, got, "%s: header %s", tt.name, h.Name)
				}
				continue
			}
			letter := letters[tt.name]
			require.NotNil(t, letter, tt.name)
			requireReason(t, letter, tt.reason, tt.says)
			require.True(t, bytes.Equal(sent[i].Payload, letter.Message.Payload), "%s: the payload's bytes", tt.name)
			require.Equal(t, sent[i].ID, letter.Message.ID, tt.name)
			require.Equal(t, sent[i].Type, letter.Message.Type, tt.name)
		}
	})
}

// sightings keeps the headers that a handler saw. It is safe for concurrent
// use.
type sightings struct {
	next handler.Func

	mu      sync.Mutex // guards headers
	headers map[string]handler.Headers
}

func (s *sightings) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	s.mu.Lock()
	s.headers[nameOf(msg)] = msg.Headers
	s.mu.Unlock()
	return s.next(ctx, tx, msg)
}
