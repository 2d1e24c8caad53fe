package dlq_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// texts are headers as names and values in turn.
func texts(headers handler.Headers) []string {
	var pairs []string
	for _, h := range headers {
		pairs = append(pairs, h.Name, string(h.Value))
	}
	return pairs
}

func died(msg *handler.Message) *dlq.Letter {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
	return &dlq.Letter{
		Consumer: "shipping", Reason: dlq.Exhausted, Attempts: 3, FirstFailedAt: at, LastFailedAt: at.Add(time.Second),
		Errors: []string{"ship order 42: no stock", "no stock", "goroutine 1"}, Message: msg,
	}
}

// death is what headers say of died.
var death = []string{
	"semel-consumer", "shipping", "semel-reason", "exhausted", "semel-attempts", "3",
	"semel-first-failure", "2026-01-02T02:04:05.000006Z", "semel-last-failure", "2026-01-02T02:04:06.000006Z",
	"semel-error", "ship order 42: no stock\ngoroutine 1",
}

func TestLetter_WriteHeaders(t *testing.T) {
	t.Parallel()

	own := handler.Headers{{Name: "message-id", Value: []byte("evt_1")}, {Name: "x", Value: nil}, {Name: "x", Value: []byte{0, 255}, Tag: 'x'}}
	tests := []struct {
		name string
		msg  handler.Message
		want []string // before death
	}{
		{
			name: "Kafka",
			msg:  handler.Message{ID: "evt_1", Headers: own, Origin: handler.Origin{Topic: "orders", Partition: 3, Offset: 1234567890123, Position: "t/3/1"}},
			want: []string{
				"message-id", "evt_1", "x", "", "x", "\x00\xff", "semel-original-id", "evt_1",
				"semel-original-topic", "orders", "semel-original-partition", "3", "semel-original-offset", "1234567890123",
			},
		},
		{
			name: "RabbitMQ", msg: handler.Message{ID: "evt_1", Origin: handler.Origin{Topic: "shipping", Exchange: "orders", RoutingKey: "order.paid"}},
			want: []string{
				"semel-original-id", "evt_1", "semel-original-queue", "shipping",
				"semel-original-exchange", "orders", "semel-original-routing-key", "order.paid",
			},
		},
		{
			name: "RabbitMQDefaultExchange", msg: handler.Message{ID: "evt_1", Origin: handler.Origin{Topic: "shipping", RoutingKey: "shipping"}},
			want: []string{
				"semel-original-id", "evt_1", "semel-original-queue", "shipping",
				"semel-original-exchange", "", "semel-original-routing-key", "shipping",
			},
		},
		{name: "NoPlace", msg: handler.Message{ID: "evt_1"}, want: []string{"semel-original-id", "evt_1"}},
		{name: "NoID", msg: handler.Message{Origin: handler.Origin{Topic: "orders"}}, want: []string{"semel-original-topic", "orders"}},
		{name: "IDThatIsNoText", msg: handler.Message{ID: "\xff\x00"}, want: []string{"semel-original-id", "\xff\x00"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			before := tt.msg

			require.Equal(t, append(tt.want, death...), texts(died(&tt.msg).WriteHeaders()))
			require.Equal(t, before, tt.msg, "the message stays as it is")
		})
	}
	headers := died(&handler.Message{Headers: own}).WriteHeaders()
	require.Equal(t, own, headers[:3], "without a value, and with a type, as they came")
}

// A message that comes from a dead letter topic and dies again says where it
// came from at first, when it first failed, and how it died last.
func TestLetter_WriteHeadersAgain(t *testing.T) {
	t.Parallel()

	first := died(&handler.Message{ID: "evt_1", Origin: handler.Origin{Topic: "orders", Position: "t/0/0"}})
	again := died(&handler.Message{
		ID: "another", Headers: first.WriteHeaders(handler.Header{Name: dlq.HeaderAltered, Value: []byte("once")}),
		Origin: handler.Origin{Topic: "dead", Partition: 7, Offset: 8, Position: "u/7/8"},
	})
	again.Consumer, again.Reason, again.Attempts, again.Errors = "repair", dlq.Permanent, 1, []string{"worse"}
	again.FirstFailedAt, again.LastFailedAt = again.FirstFailedAt.AddDate(1, 0, 0), again.LastFailedAt.AddDate(1, 0, 0)

	headers := again.WriteHeaders(handler.Header{Name: dlq.HeaderOriginalKey, Value: []byte("key")})

	require.Equal(t, []string{
		"semel-original-id", "evt_1", "semel-original-topic", "orders", "semel-original-partition", "0", "semel-original-offset", "0",
		"semel-first-failure", "2026-01-02T02:04:05.000006Z",
		"semel-consumer", "repair", "semel-reason", "permanent", "semel-attempts", "1",
		"semel-last-failure", "2027-01-02T02:04:06.000006Z", "semel-error", "worse",
	}, texts(headers))
}

// However much there is to say, the record fits where the message did.
func TestLetter_WriteHeadersFits(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("ü", 50_000)
	size := func(headers handler.Headers) (n int) {
		for _, h := range headers {
			n += len(h.Name) + len(h.Value) + 6
		}
		return n
	}
	big := func(n int) []byte { return make([]byte, n) }
	tests := []struct {
		name        string
		msg         handler.Message
		least, most int // bytes of the error
	}{
		{name: "Small", msg: handler.Message{}, least: 32_000, most: 32 << 10},
		{name: "AllLong", msg: handler.Message{ID: long, Origin: handler.Origin{Topic: long, Exchange: long, RoutingKey: long}}, least: 20_000, most: 24 << 10},
		{name: "LargePayload", msg: handler.Message{Payload: big(985_000)}, least: 4_000, most: 1_000_000 - 8<<10 - 985_000},
		{name: "LargeHeaders", msg: handler.Message{Headers: handler.Headers{{Name: "x", Value: big(120_000)}}}, least: 1_000, most: 120<<10 - 120_000},
		{name: "NoRoom", msg: handler.Message{Payload: big(2_000_000)}, least: 250, most: 256},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			l := died(&tt.msg)
			l.Errors = []string{long}
			headers := l.WriteHeaders()

			told, _ := headers.First(dlq.HeaderError)
			require.GreaterOrEqual(t, len(told), tt.least)
			require.LessOrEqual(t, len(told), tt.most)
			require.True(t, utf8.Valid(told))
			require.True(t, strings.HasSuffix(string(told), "... (100000 bytes)"), "it says that there was more")
			require.LessOrEqual(t, size(headers)-size(tt.msg.Headers), 32<<10)
		})
	}
}

func FuzzLetter_WriteHeaders(f *testing.F) {
	f.Add("evt_1", "x", []byte("y"), "no stock", 3, int64(1_700_000_000))
	f.Add("", "x", []byte("no id to tell of"), "", 0, int64(0))
	f.Add("\xff", "semel-original-id", []byte(nil), "\xff\x00", -1, int64(1)<<60)
	f.Fuzz(func(t *testing.T, id, name string, value []byte, told string, attempts int, at int64) {
		l := died(&handler.Message{ID: id, Headers: handler.Headers{{Name: name, Value: value}}})
		l.Errors, l.Attempts, l.FirstFailedAt = []string{told, "", told}, attempts, time.Unix(at, 0)

		once := l.WriteHeaders()
		l.Message = &handler.Message{ID: "another", Headers: once}

		require.ElementsMatch(t, texts(once), texts(l.WriteHeaders()), "written once, or the same")
	})
}
