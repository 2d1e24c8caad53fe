package systemtest_test

import (
	"bytes"
	"cmp"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// routes is a consumer that knows one type.
func routes() handler.Func {
	return handler.Mux(map[string]handler.Func{"order.paid": childHandler()}, nil)
}

// notJSON holds bytes that no text column and no decoder takes.
var notJSON = []byte("{\"amount\": \x00\xff\xfe 12")

// Case K8: a record that could not be decoded stopped its partition for good,
// or was dropped, or reached the dead letters in another shape
// (otel-contrib#39909; watermill#184).
func TestPoison_RecordsReachTheDeadLettersAsTheyCame(t *testing.T) {
	tests := []struct {
		name   string
		record kgo.Record
		reason dlq.Reason
		errors string
	}{
		{
			name: "Undecodable", reason: dlq.Undecodable, errors: "not JSON at byte",
			record: kgo.Record{Key: []byte{0, 0xff}, Value: notJSON, Headers: []kgo.RecordHeader{
				{Key: "message-id", Value: []byte("undecodable")},
				{Key: "message-type", Value: []byte("order.paid")},
				{Key: "nil"},
				{Key: "empty", Value: []byte{}},
				{Key: "hop", Value: []byte("b")},
				{Key: "hop", Value: []byte("a")},
				{Key: "binary", Value: []byte{0, 1, 0xfe, 0xff}},
				{Key: "name that is no text \xff\x00", Value: []byte(`\x00`)},
				{Key: "", Value: []byte("no name")},
			}},
		},
		{
			name: "NoID", reason: dlq.BadID, errors: "it is empty",
			record: kgo.Record{Value: []byte(`{"amount":1}`), Headers: []kgo.RecordHeader{{Key: "message-type", Value: []byte("order.paid")}}},
		},
		{
			name: "NoType", reason: dlq.UnknownType, errors: "add a route",
			record: kgo.Record{Value: []byte(`{"amount":1}`), Headers: []kgo.RecordHeader{{Key: "message-id", Value: []byte("untyped")}}},
		},
		{name: "Bare", reason: dlq.BadID, errors: "it is empty", record: kgo.Record{Value: []byte("just bytes")}},
		{name: "BareTombstone", reason: dlq.BadID, errors: "it is empty", record: kgo.Record{Key: []byte("k")}},
		{
			name: "Tombstone", reason: dlq.Undecodable, errors: "0 bytes of JSON",
			record: kgo.Record{Key: []byte("k"), Headers: []kgo.RecordHeader{
				{Key: "message-id", Value: []byte("tombstone")}, {Key: "message-type", Value: []byte("order.paid")},
			}},
		},
	}
	b := setup(t, onKafka, place{})
	topic := b.broker.(*topic)
	good := messages(0, len(tests)+1)
	send(t, topic, good[0])
	for i := range tests { // each followed by a good one: the partition goes on
		topic.produce(t, &tests[i].record)
		send(t, topic, good[i+1])
	}

	r := b.start(t, routes(), inbox.Config{})
	r.awaitSettled(t, len(good)+len(tests))
	r.finish(t)

	b.requireOneEffectEach(t, ids(good))
	require.Equal(t, passed{delivered: len(good) + len(tests), settled: len(good) + len(tests)}, r.passed(), "each came once")
	require.Zero(t, topic.left(t), "the committed offset is the end")
	letters := b.lettersByOffset(t)
	require.Len(t, letters, len(tests))
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			letter := letters[int64(2*i+1)]
			require.NotNil(t, letter)
			requireReason(t, letter, tt.reason, tt.errors)
			require.Equal(t, tt.record.Value, letter.Message.Payload)
			require.Equal(t, tt.record.Key, letter.Message.Key)
			require.Len(t, letter.Message.Headers, len(tt.record.Headers))
			for n, want := range tt.record.Headers {
				require.Equal(t, handler.Header{Name: want.Key, Value: want.Value}, letter.Message.Headers[n])
			}
		})
	}
}

// Case Q4: a body that could not be decoded, or a message without id or type,
// was given back to the queue and came again at once, for ever
// (wolverine#2383).
func TestPoison_QueuedMessagesReachTheDeadLettersAsTheyCame(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	tests := []struct {
		name    string
		message amqp.Publishing
		reason  dlq.Reason
		errors  string
		headers handler.Headers
	}{
		{
			name: "Undecodable", reason: dlq.Undecodable, errors: "not JSON at byte",
			message: amqp.Publishing{MessageId: "undecodable", Type: "order.paid", Body: notJSON, Headers: amqp.Table{
				"a-text": "a", "b-bytes": []byte{0, 0xff}, "c-bool": true, "d-int": int32(-7), "e-long": int64(1 << 40), "f-double": 0.1,
				"g-time": at, "h-nil": nil, "i-list": []any{"b", "a"}, "j-table": amqp.Table{"in": "side"}, "k-decimal": amqp.Decimal{Scale: 2, Value: 500},
				"l-not-text": "\xff\x00",
			}},
			headers: handler.Headers{
				{Name: "a-text", Tag: 'S', Value: []byte("a")},
				{Name: "b-bytes", Tag: 'x', Value: []byte{0, 0xff}},
				{Name: "c-bool", Tag: 't', Value: []byte("true")},
				{Name: "d-int", Tag: 'I', Value: []byte("-7")},
				{Name: "e-long", Tag: 'l', Value: []byte("1099511627776")},
				{Name: "f-double", Tag: 'd', Value: []byte("0.1")},
				{Name: "g-time", Tag: 'T', Value: []byte("2023-11-14T22:13:20Z")},
				{Name: "h-nil", Tag: 'V'},
				{Name: "i-list", Tag: 'S', Value: []byte("b")},
				{Name: "i-list", Tag: 'S', Value: []byte("a")},
				{Name: "j-table", Tag: 'F', Value: []byte(`{"in":"side"}`)},
				{Name: "k-decimal", Tag: 'D', Value: []byte("5.00")},
				{Name: "l-not-text", Tag: 'S', Value: []byte("\xff\x00")},
			},
		},
		{name: "NoID", reason: dlq.BadID, errors: "it is empty", message: amqp.Publishing{Type: "order.paid", Body: []byte(`{"amount":1}`)}},
		{name: "NoType", reason: dlq.UnknownType, errors: "add a route", message: amqp.Publishing{MessageId: "untyped", Body: []byte(`{"amount":2}`)}},
		{name: "Bare", reason: dlq.BadID, errors: "it is empty", message: amqp.Publishing{Body: []byte("just bytes")}},
		{name: "Nothing", reason: dlq.BadID, errors: "it is empty", message: amqp.Publishing{Body: []byte{}}},
	}
	b := setup(t, onRabbitMQ, place{})
	queue := b.broker.(*queue)
	good := messages(0, len(tests)+1)
	send(t, queue, good[0])
	for i, tt := range tests {
		queue.send(t, tt.message)
		send(t, queue, good[i+1])
	}

	r := b.start(t, routes(), inbox.Config{})
	r.awaitSettled(t, len(good)+len(tests))
	r.finish(t)

	b.requireOneEffectEach(t, ids(good))
	require.Equal(t, passed{delivered: len(good) + len(tests), settled: len(good) + len(tests)}, r.passed(), "each came once")
	require.Zero(t, queue.left(t), "all were acknowledged")
	letters := b.allLetters(t)
	require.Len(t, letters, len(tests))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := slices.IndexFunc(letters, func(l *dlq.Letter) bool { return bytes.Equal(l.Message.Payload, tt.message.Body) })
			require.GreaterOrEqual(t, i, 0, "its bytes are in no dead letter")
			requireReason(t, letters[i], tt.reason, tt.errors)
			require.Equal(t, tt.message.MessageId, letters[i].Message.ID)
			require.Equal(t, tt.headers, letters[i].Message.Headers)
		})
	}
}

func requireReason(t *testing.T, letter *dlq.Letter, reason dlq.Reason, text string) {
	t.Helper()
	require.Equal(t, reason, letter.Reason)
	require.Equal(t, dlq.Open, letter.State)
	require.Equal(t, int64(1), letter.Count)
	require.NotEmpty(t, letter.Errors)
	require.Contains(t, letter.Errors[0], text)
}

// allLetters returns the dead letters, oldest first.
func (b *testBundle) allLetters(t *testing.T) []*dlq.Letter {
	t.Helper()
	store := dlq.NewStore(b.Schema)
	list, err := store.List(t.Context(), b.Pool, dlq.Filter{Limit: 1000})
	require.NoError(t, err)
	letters := make([]*dlq.Letter, len(list))
	for i := range list {
		letters[i], err = store.Load(t.Context(), b.Pool, list[i].ID)
		require.NoError(t, err)
	}
	slices.SortFunc(letters, func(a, b *dlq.Letter) int { return cmp.Compare(a.ID, b.ID) })
	return letters
}

func (b *testBundle) lettersByOffset(t *testing.T) map[int64]*dlq.Letter {
	t.Helper()
	letters := map[int64]*dlq.Letter{}
	for _, letter := range b.allLetters(t) {
		letters[letter.Message.Origin.Offset] = letter
	}
	return letters
}
