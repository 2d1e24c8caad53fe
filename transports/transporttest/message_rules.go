package transporttest

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

// largePayload is just under what a Kafka broker takes unless it is told to
// take more.
const largePayload = 900_000

func messageRules() []rule {
	return []rule{
		{
			name:     "FieldsArrive",
			sentence: "A message arrives with the id, type, key, version, correlation id, causation id, source, content type and time it was published with.",
			check:    checkFieldsArrive,
		},
		{
			name:     "PayloadsArrive",
			sentence: "A payload arrives byte for byte, be it empty, binary or large.",
			check:    checkPayloadsArrive,
		},
		{
			name:     "TombstonesArrive",
			sentence: "A nil payload arrives as nil, an empty one as empty.",
			needs:    "Tombstones",
			check:    checkTombstonesArrive,
		},
		{
			name:     "HeadersArrive",
			sentence: "A header arrives with its name and value.",
			check: headerCheck(handler.Headers{
				{Name: "x-plain", Value: []byte("text")},
				{Name: "x-Case", Value: []byte("Grüße ✓")},
				{Name: "x-long", Value: []byte(strings.Repeat("long ", 2_000))},
			}),
		},
		{
			name:     "HeaderOrder",
			sentence: "Headers arrive in the order they were sent.",
			needs:    "HeaderOrder",
			check:    checkHeaderOrder,
		},
		{
			name:     "RepeatedHeaders",
			sentence: "All headers of one name arrive, in the order they were sent.",
			needs:    "RepeatedHeaders",
			check: headerCheck(handler.Headers{
				{Name: "x-hop", Value: []byte("b")}, {Name: "x-hop", Value: []byte("a")}, {Name: "x-hop", Value: []byte("b")},
			}),
		},
		{
			name:     "NilHeaders",
			sentence: "A header without a value arrives without one, an empty one as empty.",
			needs:    "NilHeaders",
			check:    headerCheck(handler.Headers{{Name: "x-nil"}, {Name: "x-empty", Value: []byte{}}}),
		},
		{
			name:     "BinaryHeaders",
			sentence: "A header's value arrives byte for byte.",
			needs:    "BinaryHeaders",
			check:    headerCheck(handler.Headers{{Name: "x-bytes", Value: everyByte()}}),
		},
	}
}

func checkFieldsArrive(t *testing.T, b *bundle) {
	want := &handler.Message{
		ID:            strings.Repeat("é", 127) + "!", // 255 bytes: the longest there is
		Type:          "order.paid",
		Key:           []byte("order_42"),
		Version:       9_007_199_254_740_993, // no float64 holds it
		CorrelationID: "corr_1",
		CausationID:   "evt_0",
		Source:        "/shop/orders",
		ContentType:   "application/json",
		OccurredAt:    time.Date(2024, 2, 29, 12, 30, 15, 123_456_789, time.UTC),
		Payload:       []byte(`{"id":42}`),
	}
	b.publish(t, want)

	m := b.join(t, SinkConfig{})
	got := m.collect(t, 1)[0]

	require.Equal(t, want.ID, got.ID)
	require.Equal(t, want.Type, got.Type)
	require.Equal(t, want.Key, got.Key)
	require.Equal(t, want.Version, got.Version)
	require.Equal(t, want.CorrelationID, got.CorrelationID)
	require.Equal(t, want.CausationID, got.CausationID)
	require.Equal(t, want.Source, got.Source)
	require.Equal(t, want.ContentType, got.ContentType)
	require.True(t, want.OccurredAt.Equal(got.OccurredAt), "occurred at %s, arrived as %s", want.OccurredAt, got.OccurredAt)
	require.Equal(t, want.Payload, got.Payload)
}

func checkPayloadsArrive(t *testing.T, b *bundle) {
	large := make([]byte, largePayload)
	_, _ = rand.Read(large) // never fails; random, so that no compression hides its size
	want := map[string][]byte{"empty": {}, "one": {0}, "binary": everyByte(), "large": large}
	for id, payload := range want {
		b.publish(t, &handler.Message{ID: id, Payload: payload})
	}

	m := b.join(t, SinkConfig{})
	for len(want) > 0 {
		got := m.collect(t, 1)[0]
		if payload, ok := want[got.ID]; ok {
			require.Len(t, got.Payload, len(payload), "payload %q", got.ID)
			require.True(t, slices.Equal(payload, got.Payload), "payload %q has changed", got.ID)
			delete(want, got.ID)
		}
	}
}

func checkTombstonesArrive(t *testing.T, b *bundle) {
	b.publish(t, &handler.Message{ID: "nil", Key: []byte("k")}, &handler.Message{ID: "empty", Key: []byte("k"), Payload: []byte{}})

	m := b.join(t, SinkConfig{})
	for range 2 {
		got := m.collect(t, 1)[0]
		require.Empty(t, got.Payload)
		require.Equal(t, got.ID == "nil", got.Payload == nil, "payload %q arrived as %#v", got.ID, got.Payload)
	}
}

// headerCheck returns a check that headers arrive, name by name: a transport
// may keep no order between names.
func headerCheck(headers handler.Headers) func(*testing.T, *bundle) {
	return func(t *testing.T, b *bundle) {
		b.publish(t, &handler.Message{ID: "evt_1", Headers: headers})

		m := b.join(t, SinkConfig{})
		got := m.collect(t, 1)[0]

		for _, h := range headers {
			values := got.Headers.All(h.Name)
			require.Equal(t, headers.All(h.Name), values, "header %q", h.Name)
		}
	}
}

func checkHeaderOrder(t *testing.T, b *bundle) {
	var headers handler.Headers
	for i := range 20 {
		headers = append(headers, handler.Header{Name: fmt.Sprintf("x-%d", (i*7)%20), Value: []byte("v")})
	}
	b.publish(t, &handler.Message{ID: "evt_1", Headers: headers})

	m := b.join(t, SinkConfig{})
	var got []string
	for _, h := range m.collect(t, 1)[0].Headers {
		if strings.HasPrefix(h.Name, "x-") {
			got = append(got, h.Name)
		}
	}

	var want []string
	for _, h := range headers {
		want = append(want, h.Name)
	}
	require.Equal(t, want, got)
}

func everyByte() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}
