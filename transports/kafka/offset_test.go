package kafka_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/transporttest"
)

// deleteBefore makes the log of a partition begin at offset, as retention does.
func (b *testBundle) deleteBefore(t *testing.T, partition int32, offset int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(b.topic, partition, offset, -1)
	_, err := b.admin.DeleteRecords(t.Context(), offsets)
	require.NoError(t, err)
}

// A new group starts at the oldest record; the user may choose otherwise.
func TestSource_StartOffset(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		b.produce(t, 0, numbered(0, 5)...)
		b.deleteBefore(t, 0, 2)
		r := start(t, b.source(), transporttest.SinkConfig{})
		require.Equal(t, numbered(2, 5), payloads(r.take(t, 3)))
		require.Zero(t, r.source.Stats().RecordsLost, "what was deleted before the group was there is not lost to it")
	})
	t.Run("AtEnd", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 1)
		b.produce(t, 0, "old")
		r := start(t, b.source(kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd())), transporttest.SinkConfig{})
		require.Eventually(t, func() bool { // nobody tells when it has found the end
			b.produce(t, 0, "new")
			return len(r.sink.Arrived()) > 0
		}, deadline, tick)
		require.Equal(t, "new", string(r.sink.Arrived()[0].Payload))
	})
}

// Case K11: the committed offset fell off retention, and the consumer jumped
// to the end in silence (franz-go#309, #1416).
func TestSource_FellOffRetention(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		b.produce(t, 0, numbered(0, 10)...)
		b.commit(t, 0, 2)
		b.deleteBefore(t, 0, 5)
		var logged log
		config := b.config()
		config.Logger = logged.logger()
		r := start(t, b.sourceOf(config), transporttest.SinkConfig{Settle: true})

		logged.await(t, "records were deleted by the topic's retention before they were consumed")
		require.Contains(t, logged.String(), "expected_offset=2 log_start_offset=5 records_lost=3")
		require.Contains(t, logged.String(), "level=ERROR")
		require.EqualValues(t, 3, r.source.Stats().RecordsLost)
		b.awaitCommitted(t, 0, 10)
		require.Equal(t, "record 0005", string(r.sink.Arrived()[0].Payload))
	})
}

// Case K11, while it runs: retention overtook a consumer that had fallen behind.
func TestSource_OvertakenByRetention(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	config := b.config()
	config.WindowRecords = 2
	b.produce(t, 0, "one", "two")
	r := start(t, b.sourceOf(config), transporttest.SinkConfig{})
	slow := r.take(t, 2)
	r.awaitStats(t, func(s kafka.SourceStats) bool { return s.Held == 1 }, "the window is full")
	b.produce(t, 0, numbered(2, 10)...)
	b.deleteBefore(t, 0, 7)
	settle(slow)

	require.Equal(t, numbered(7, 10), payloads(r.take(t, 3)))
	require.EqualValues(t, 5, r.source.Stats().RecordsLost)
}

// Case K11, the other side: the log ends before the committed offset, since
// the brokers lost its end or the topic was made anew. Only reading it again
// skips nothing.
func TestSource_CommittedPastTheEnd(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		b.produce(t, 0, numbered(0, 5)...)
		b.commit(t, 0, 500)
		var logged log
		config := b.config()
		config.Logger = logged.logger()
		r := start(t, b.sourceOf(config), transporttest.SinkConfig{Settle: true})

		b.awaitCommitted(t, 0, 5)
		require.Len(t, r.sink.Arrived(), 5)
		require.EqualValues(t, 1, r.source.Stats().Rewinds)
		logged.await(t, "the log was rewound")
		require.Contains(t, logged.String(), "expected_offset=500 first_offset=0")
	})
}

// Case K11 for those who want to decide themselves.
func TestSource_NoResetOffset(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, numbered(0, 10)...)
	b.commit(t, 0, 2)
	b.deleteBefore(t, 0, 5)
	r := start(t, b.source(kgo.ConsumeResetOffset(kgo.NoResetOffset())), transporttest.SinkConfig{})

	err := r.await(t)
	require.ErrorContains(t, err, "OFFSET_OUT_OF_RANGE")
	require.ErrorContains(t, err, b.topic+"/0")
	require.ErrorContains(t, err, "set the group's offset")
	require.EqualValues(t, 2, b.committed(t, 0))
}
