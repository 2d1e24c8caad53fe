package rabbitmq_test

import (
	"math"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

// Every type that a client can put into a table arrives as text with its type,
// sorted by name, and leaves with the same type again.
func TestHeaders_EveryType(t *testing.T) {
	t.Parallel()

	b := setup(t)
	table := amqp.Table{
		"a-text":        "Grüße",
		"a-text-empty":  "",
		"a-text-bytes":  "\xff\xfe",
		"b-bytes":       []byte{0, 0xff},
		"b-bytes-empty": []byte{},
		"c-true":        true,
		"d-int8":        int8(-8),
		"d-uint8":       uint8(200),
		"d-int16":       int16(-1600),
		"d-uint16":      uint16(65_000),
		"d-int32":       int32(math.MinInt32),
		"d-uint32":      uint32(math.MaxUint32),
		"d-int64":       int64(9_007_199_254_740_993),
		"e-float":       float32(0.1),
		"e-double":      0.1,
		"f-decimal":     amqp.Decimal{Scale: 2, Value: -5},
		"f-whole":       amqp.Decimal{Scale: 0, Value: 42},
		"g-time":        time.Unix(1_700_000_000, 0),
		"g-time-far":    time.Unix(math.MaxInt64, 0),
		"h-nil":         nil,
		"i-table":       amqp.Table{"n": int64(1), "s": "x", "t": amqp.Table{}},
		"j-array":       []any{amqp.Table{"count": int64(2), "reason": "rejected"}},
		"j-array-empty": []any{},
		"j-array-one":   []any{"alone"},
		"k-repeated":    []any{"x", int32(7), nil},
	}
	want := handler.Headers{
		{Name: "a-text", Value: []byte("Grüße"), Tag: 'S'},
		{Name: "a-text-bytes", Value: []byte("\xff\xfe"), Tag: 'S'},
		{Name: "a-text-empty", Value: []byte{}, Tag: 'S'},
		{Name: "b-bytes", Value: []byte{0, 0xff}, Tag: 'x'},
		{Name: "b-bytes-empty", Value: []byte{}, Tag: 'x'},
		{Name: "c-true", Value: []byte("true"), Tag: 't'},
		{Name: "d-int16", Value: []byte("-1600"), Tag: 's'},
		{Name: "d-int32", Value: []byte("-2147483648"), Tag: 'I'},
		{Name: "d-int64", Value: []byte("9007199254740993"), Tag: 'l'},
		{Name: "d-int8", Value: []byte("-8"), Tag: 'b'},
		{Name: "d-uint16", Value: []byte("65000"), Tag: 'u'},
		{Name: "d-uint32", Value: []byte("4294967295"), Tag: 'i'},
		{Name: "d-uint8", Value: []byte("200"), Tag: 'B'},
		{Name: "e-double", Value: []byte("0.1"), Tag: 'd'},
		{Name: "e-float", Value: []byte("0.1"), Tag: 'f'},
		{Name: "f-decimal", Value: []byte("-0.05"), Tag: 'D'},
		{Name: "f-whole", Value: []byte("42"), Tag: 'D'},
		{Name: "g-time", Value: []byte("2023-11-14T22:13:20Z"), Tag: 'T'},
		{Name: "g-time-far", Value: []byte("9223372036854775807"), Tag: 'T'},
		{Name: "h-nil", Tag: 'V'},
		{Name: "i-table", Value: []byte(`{"n":1,"s":"x","t":{}}`), Tag: 'F'},
		{Name: "j-array", Value: []byte(`[{"count":2,"reason":"rejected"}]`), Tag: 'A'},
		{Name: "j-array-empty", Value: []byte(`[]`), Tag: 'A'},
		{Name: "j-array-one", Value: []byte(`["alone"]`), Tag: 'A'},
		{Name: "k-repeated", Value: []byte("x"), Tag: 'S'},
		{Name: "k-repeated", Value: []byte("7"), Tag: 'I'},
		{Name: "k-repeated", Tag: 'V'},
	}
	b.publish(t, amqp.Publishing{Headers: table})

	r := run(t, b.sourceConfig(), transporttest.SinkConfig{})
	first := r.sink.Next(t)
	require.Equal(t, want, first.Message.Headers)
	first.Settled()

	p := b.newPublisher(t, rabbitmq.PublisherConfig{})
	require.NoError(t, publishOne(t.Context(), p, &handler.Message{Headers: first.Message.Headers}))
	second := r.sink.Next(t)
	require.Equal(t, want, second.Message.Headers)
	second.Settled()
	r.stop(t)
}

// A client may make up an x-death of any type; no reader may panic on it.
func TestHeaders_MadeUpDeath(t *testing.T) {
	t.Parallel()

	b := setup(t)
	deaths := []any{int32(3), "text", nil, []any{[]any{"deep"}}, amqp.Table{"x": []any{"\xff", time.Unix(0, 0), []byte{1}, float32(0.5)}}}
	for _, death := range deaths {
		b.publish(t, amqp.Publishing{Headers: amqp.Table{"x-death": death, "message-id": death, "id": death}})
	}
	r := run(t, b.sourceConfig(), transporttest.SinkConfig{})
	for range deaths {
		d := r.sink.Next(t)
		_, ok := d.Message.Headers.First("x-death")
		require.True(t, ok)
		d.Settled()
	}
	r.stop(t)
	b.requireEmpty(t)
}

// Headers from elsewhere: text that is text, bytes that are not, a type that
// does not fit its value, and orders to the broker.
func TestHeaders_FromElsewhere(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := b.newPublisher(t, rabbitmq.PublisherConfig{})
	require.NoError(t, publishOne(t.Context(), p, &handler.Message{Headers: handler.Headers{
		{Name: "a", Value: []byte("text")},
		{Name: "b", Value: []byte{0xff}},
		{Name: "c", Value: []byte("not a number"), Tag: 'I'},
		{Name: "d", Value: []byte("{"), Tag: 'F'},
		{Name: "e", Value: []byte("[]"), Tag: 'F'},
		{Name: "f", Value: []byte("x"), Tag: '?'},
		{Name: "g", Value: []byte("NaN"), Tag: 'd'},
		{Name: "h", Value: []byte("-Inf"), Tag: 'f'},
		{Name: "i", Value: []byte(`{"n":1e999}`), Tag: 'F'},
		{Name: "CC", Value: []byte(b.queue)},
		{Name: "BCC", Value: []byte(b.queue)},
	}}))

	r := run(t, b.sourceConfig(), transporttest.SinkConfig{})
	d := r.sink.Next(t)
	require.Equal(t, handler.Headers{
		{Name: "a", Value: []byte("text"), Tag: 'S'},
		{Name: "b", Value: []byte{0xff}, Tag: 'x'},
		{Name: "c", Value: []byte("not a number"), Tag: 'S'},
		{Name: "d", Value: []byte("{"), Tag: 'S'},
		{Name: "e", Value: []byte("[]"), Tag: 'S'},
		{Name: "f", Value: []byte("x"), Tag: 'S'},
		{Name: "g", Value: []byte("NaN"), Tag: 'S'},
		{Name: "h", Value: []byte("-Inf"), Tag: 'S'},
		{Name: "i", Value: []byte(`{"n":"1e999"}`), Tag: 'F'},
	}, d.Message.Headers)
	d.Settled()
	r.stop(t)
}

// The properties are what other clients look at, and what they fill.
func TestMessage_Properties(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.publish(t, amqp.Publishing{
		MessageId: "id", Type: "type", CorrelationId: "correlation", ContentType: "text/plain",
		Timestamp: time.Unix(1_700_000_000, 0), Body: []byte("body"),
	})
	r := run(t, b.sourceConfig(), transporttest.SinkConfig{})
	d := r.sink.Next(t)
	require.Equal(t, &handler.Message{
		ID: "id", Type: "type", CorrelationID: "correlation", ContentType: "text/plain",
		OccurredAt: time.Unix(1_700_000_000, 0).UTC(), Payload: []byte("body"),
		Origin: handler.Origin{Transport: "rabbitmq", Topic: b.queue, RoutingKey: b.queue},
	}, d.Message)
	d.Settled()
	r.stop(t)

	p := b.newPublisher(t, rabbitmq.PublisherConfig{})
	require.NoError(t, publishOne(t.Context(), p, d.Message))
	got, ok, err := b.channel.Get(b.queue, true)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []any{"id", "type", "correlation", "text/plain", amqp.Persistent, int64(1_700_000_000), ""},
		[]any{got.MessageId, got.Type, got.CorrelationId, got.ContentType, got.DeliveryMode, got.Timestamp.Unix(), got.UserId + got.Expiration})
	require.Equal(t, amqp.Table{
		"message-id": "id", "message-type": "type", "correlation-id": "correlation", "content-type": "text/plain",
		"occurred-at": "2023-11-14T22:13:20Z",
	}, got.Headers)

	// The timestamp is unsigned: what was before 1970 stands in the header alone.
	require.NoError(t, publishOne(t.Context(), p, &handler.Message{OccurredAt: time.Unix(-1, 0)}))
	got, ok, err = b.channel.Get(b.queue, true)
	require.NoError(t, err)
	require.True(t, ok)
	require.Zero(t, got.Timestamp)
	require.Equal(t, amqp.Table{"occurred-at": "1969-12-31T23:59:59Z"}, got.Headers)
}
