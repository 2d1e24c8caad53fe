package kafka_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/transporttest"
)

// Case K7: consumers died of records that other producers think normal: a
// tombstone, no key, no headers, a header without value, a header that repeats
// (spring-kafka#1494; kafka-go#659).
func TestSource_UnusualRecords(t *testing.T) {
	t.Parallel()

	at := time.Date(2024, 2, 29, 12, 0, 0, int(789*time.Millisecond), time.UTC)
	records := []*kgo.Record{
		{Value: nil, Key: []byte("k")},
		{Value: []byte("no key, no headers"), Timestamp: at},
		{Value: []byte{}, Key: []byte{}, Timestamp: time.UnixMilli(-1)},
		{Headers: []kgo.RecordHeader{
			{Key: "x-hop", Value: []byte("b")},
			{Key: "x-nil"},
			{Key: "message-id"},
			{Key: "x-hop", Value: []byte("a")},
			{Key: "x-empty", Value: []byte{}},
			{Key: "message-id", Value: []byte("evt_1")},
			{Key: "", Value: []byte("no name")},
			{Key: "message-version", Value: []byte{0xff, 0}},
			{Key: "x-hop", Value: []byte("b")},
		}},
		{Headers: []kgo.RecordHeader{{Key: strings.Repeat("long", 1000), Value: []byte{0, 0xff}}}, Value: []byte("\xff\x00 not text")},
	}
	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		var sent []*kgo.Record
		for _, r := range records {
			r := *r
			r.Topic = b.topic
			sent = append(sent, &r)
		}
		require.NoError(t, b.client.ProduceSync(t.Context(), sent...).FirstErr())

		r := start(t, b.source(), transporttest.SinkConfig{})
		got := r.take(t, len(records))
		settle(got)
		r.stop(t)

		require.EqualValues(t, len(records), b.committed(t, 0))
		for i, d := range got {
			m := d.Message
			require.Equal(t, records[i].Value == nil, m.Payload == nil, "record %d: nil and empty differ", i)
			require.Equal(t, string(records[i].Value), string(m.Payload), "record %d", i)
			require.Equal(t, string(records[i].Key), string(m.Key), "record %d", i)
			require.Len(t, m.Headers, len(records[i].Headers), "record %d", i)
			for j, h := range records[i].Headers {
				require.Equal(t, handler.Header{Name: h.Key, Value: h.Value}, m.Headers[j], "header %d of record %d", j, i)
			}
			require.Equal(t, "kafka", m.Origin.Transport)
			require.Equal(t, b.topic, m.Origin.Topic)
			require.EqualValues(t, 0, m.Origin.Partition)
			require.EqualValues(t, i, m.Origin.Offset)
		}
		require.True(t, at.Equal(got[1].Message.Origin.Time), "the record's own time: %s", got[1].Message.Origin.Time)
		require.Zero(t, got[2].Message.Origin.Time, "a record without a time")
		require.Equal(t, "evt_1", got[3].Message.ID, "the first message-id that has a value")
		require.Zero(t, got[3].Message.Version, "what cannot be read is left empty")
	})
}

// A position is the same whenever a record comes, and never used again, also
// by a topic of the same name.
func TestSource_Position(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		position := func() string {
			t.Helper()
			r := start(t, b.source(), transporttest.SinkConfig{})
			d := r.sink.Next(t)
			d.Returned(errOnceMore)
			again := r.sink.Next(t)
			require.Equal(t, d.Message.Origin.Position, again.Message.Origin.Position)
			r.sink.Refuse(errOnceMore)
			again.Returned(errOnceMore)
			r.stop(t)
			return d.Message.Origin.Position
		}
		b.produce(t, 0, "record")
		first := position()
		require.Regexp(t, `^[A-Za-z0-9_-]{22}/0/0$`, first)
		require.Equal(t, first, position(), "another member, the same record")

		_, err := b.admin.DeleteTopic(t.Context(), b.topic)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err := b.admin.CreateTopic(t.Context(), 1, 1, nil, b.topic)
			return err == nil
		}, deadline, tick)
		require.Eventually(t, func() bool { // a broker may know the old topic for a while: what went there is gone with it
			b.client.PurgeTopicsFromClient(b.topic)
			return b.client.ProduceSync(t.Context(), &kgo.Record{Topic: b.topic, Value: []byte("record")}).FirstErr() == nil
		}, deadline, tick)
		require.NotEqual(t, first, position(), "another topic of the same name")
	})
}
