package dlq_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// Case K8: an undecodable record reaches the dead letters as it came, bytes
// intact (otel-contrib#39909; watermill#184).
func TestStore_KeepsTheMessageAsItCame(t *testing.T) {
	t.Parallel()

	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	at := time.Date(2026, 3, 1, 12, 30, 0, 123456000, time.UTC)

	tests := []struct {
		name    string
		message handler.Message
		altered string
	}{
		{name: "Empty", message: handler.Message{}},
		{name: "Everything", message: handler.Message{
			ID: "evt_1", Type: "order.paid", Key: []byte("k\x00"), Version: -3, CorrelationID: "c", CausationID: "b",
			Source: "shop", ContentType: "application/json", OccurredAt: at, Payload: everyByte,
			Headers: handler.Headers{{Name: "message-id", Value: []byte("evt_1"), Tag: 'S'}},
			Origin: handler.Origin{
				Transport: "kafka", Topic: "orders", Partition: 7, Offset: 1 << 40, Position: "id/7/1",
				Exchange: "ex", RoutingKey: "rk", Time: at, Redelivered: true,
			},
		}},
		{name: "FirstPartition", message: handler.Message{ID: "1", Origin: handler.Origin{Position: "topic/0/41", Offset: 41}}},
		{name: "Tombstone", message: handler.Message{ID: "1", Payload: nil}},
		{name: "EmptyPayload", message: handler.Message{ID: "1", Payload: []byte{}, Key: []byte{}}},
		{name: "NoHeaders", message: handler.Message{ID: "1", Headers: nil}},
		{name: "EmptyHeaders", message: handler.Message{ID: "1", Headers: handler.Headers{}}},
		{name: "RepeatedNilAndBinaryHeaders", message: handler.Message{ID: "1", Headers: handler.Headers{
			{Name: "a", Value: []byte("1")},
			{Name: "b", Value: nil},
			{Name: "a", Value: []byte{}},
			{Name: "a", Value: everyByte},
			{Name: "", Value: []byte("no name")},
			{Name: "é", Value: []byte("{,\"}")},
		}}},
		{name: "SomeHeadersTagged", message: handler.Message{ID: "1", Headers: handler.Headers{
			{Name: "a", Value: []byte("1"), Tag: 'l'}, {Name: "b", Value: []byte("x")}, {Name: "c", Value: []byte("true"), Tag: 't'},
		}}},
		{name: "TenMegabytes", message: handler.Message{ID: "1", Payload: bytes.Repeat(everyByte, 10<<20/256)}},
		{name: "IDWithNUL", message: handler.Message{ID: "a\x00b"}},
		{name: "IDNotUTF8", message: handler.Message{ID: "\xff\xfe"}},
		{name: "LongID", message: handler.Message{ID: strings.Repeat("x", 10_000)}},
		{name: "IDWithBackslashes", message: handler.Message{ID: `a\x00\\`}},
		{name: "TypeWithNUL", message: handler.Message{ID: "1", Type: "a\x00\\b\\x00"}, altered: "message_type escaped"},
		{name: "TypeWithBackslashes", message: handler.Message{ID: "1", Type: `a\x00\\`}},
		{
			name: "NothingIsText",
			message: handler.Message{
				ID: "\xff", Type: "\xff", CorrelationID: "\xc3", CausationID: "\x00", Source: "é\xe9", ContentType: "\\\xff",
				Headers: handler.Headers{{Name: "a\xff"}, {Name: `b\x00`, Tag: 'S'}},
				Origin:  handler.Origin{Transport: "\x00", Topic: "\x00", Position: "\x00", Exchange: "\x00", RoutingKey: "\x00\xff"},
			},
			altered: "header_names escaped, message_type escaped, correlation_id escaped, causation_id escaped, source escaped, content_type escaped, " +
				"origin_transport escaped, origin_topic escaped, origin_position escaped, origin_exchange escaped, origin_routing_key escaped",
		},
	}
	b := setup(t)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fingerprint := int64(-5)
			id := b.add(t, &dlq.Letter{
				ConsumerID: -7, MessageID: [16]byte{byte(i), 255}, Fingerprint: &fingerprint, Reason: dlq.Undecodable,
				Attempts: 1, Errors: []string{"outer: inner", "inner"}, Message: &tt.message,
			})

			l := b.load(t, id)

			require.Equal(t, &tt.message, l.Message)
			require.Equal(t, tt.altered, l.Altered)
			require.Equal(t, int32(-7), l.ConsumerID)
			require.Equal(t, [16]byte{byte(i), 255}, l.MessageID)
			require.Equal(t, &fingerprint, l.Fingerprint)
			require.Equal(t, dlq.Undecodable, l.Reason)
			require.Equal(t, dlq.Open, l.State)
			require.Equal(t, int64(1), l.Count)
			require.Equal(t, 1, l.Attempts)
			require.Equal(t, []string{"outer: inner", "inner"}, l.Errors)
			require.WithinDuration(t, time.Now(), l.FirstFailedAt, time.Hour)
			require.WithinDuration(t, time.Now(), l.LastFailedAt, time.Hour)
			require.Zero(t, l.ResolvedAt)
		})
	}
}

// What cannot be given back is named.
func TestStore_SaysWhatIsLost(t *testing.T) {
	t.Parallel()

	b := setup(t)
	id := b.add(t, &dlq.Letter{
		Reason: dlq.Permanent,
		Errors: []string{"a\x00", strings.Repeat("é", dlq.MaxErrorBytes)},
		Message: &handler.Message{
			OccurredAt: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC),
			Headers:    handler.Headers{{Name: "a", Value: []byte("1"), Tag: 0xff}, {Name: "b", Tag: '-'}},
			Origin:     handler.Origin{Time: time.UnixMilli(1 << 62)},
		},
	})

	l := b.load(t, id)

	require.Equal(t, "errors cut, errors escaped, header_tags dropped, occurred_at dropped, origin_time dropped", l.Altered)
	require.Equal(t, `a\x00`, l.Errors[0])
	require.Len(t, l.Errors[1], dlq.MaxErrorBytes-1) // the odd byte of a two-byte character is left out
	require.True(t, strings.HasSuffix(l.Errors[1], "é... (16384 bytes)"))
	require.Equal(t, handler.Headers{{Name: "a", Value: []byte("1")}, {Name: "b"}}, l.Message.Headers)
	require.Zero(t, l.Message.OccurredAt)
	require.Zero(t, l.Message.Origin.Time)
}

// A pooler in transaction mode forces other ways to send a query than the default.
func TestStore_WorksInEveryExecMode(t *testing.T) {
	t.Parallel()

	b := setup(t)
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	}
	for i, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			config := b.pool.Config()
			config.ConnConfig.DefaultQueryExecMode = mode
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			defer pool.Close()
			one := testBundle{pool: pool, schema: b.schema, store: b.store}
			messageID := [16]byte{byte(i), 1}
			message := handler.Message{
				ID: "\xff", Version: 1, Key: []byte{0}, Payload: []byte("\x00\\"), OccurredAt: time.Unix(1, 0).UTC(),
				Headers: handler.Headers{{Name: "a", Value: nil, Tag: 'V'}, {Name: "b", Value: []byte{0}}},
				Origin:  handler.Origin{Partition: 1, Offset: 2, Position: "p"},
			}

			id := one.add(t, &dlq.Letter{ConsumerID: 1, MessageID: messageID, Reason: dlq.BadID, Message: &message})
			l := one.load(t, id)
			require.Equal(t, &message, l.Message)
			one.inTx(t, func(tx pgx.Tx) {
				again, err := one.store.Again(t.Context(), tx, 1, messageID)
				require.NoError(t, err)
				require.True(t, again)
				failed, err := one.store.Fail(t.Context(), tx, id, dlq.Failure{Reason: dlq.Exhausted, Attempts: 2, Errors: []string{"x"}})
				require.NoError(t, err)
				require.True(t, failed)
				resolved, err := one.store.Resolve(t.Context(), tx, id)
				require.NoError(t, err)
				require.True(t, resolved)
			})
			list, err := one.store.List(t.Context(), pool, dlq.Filter{State: dlq.Resolved, Limit: 1})
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Equal(t, id, list[0].ID)
			n, err := one.store.Count(t.Context(), pool, dlq.Filter{})
			require.NoError(t, err)
			require.Equal(t, int64(i+1), n)
		})
	}
}
