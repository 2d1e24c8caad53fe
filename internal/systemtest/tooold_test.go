package systemtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// forgotten makes a topic of which a group has handled all records, old ones and
// young ones; a purge has then deleted what it knew of the old ones, and somebody
// has set the group back to the beginning.
func forgotten(t *testing.T, old, young int) (*testBundle, *topic) {
	t.Helper()
	const day = 24 * time.Hour
	b := setup(t, onKafka, place{partitions: 1})
	tp := b.broker.(*topic)
	var records []*kgo.Record
	for n := range old + young {
		at := time.Now()
		if n < old {
			at = at.Add(-3 * day)
		}
		records = append(records, &kgo.Record{
			Key: []byte("k"), Value: []byte(`{}`), Timestamp: at,
			Headers: []kgo.RecordHeader{{Key: handler.HeaderID, Value: fmt.Appendf(nil, "evt_%d", n)}},
		})
	}
	tp.produce(t, records...)
	r := b.start(t, effect, inbox.Config{})
	r.awaitSettled(t, old+young)
	r.finish(t)
	require.EqualValues(t, old+young, tp.committed(t)[0])

	b.exec(t, `UPDATE processed_messages SET processed_at = processed_at - interval '2 days'
		WHERE message_text IN (SELECT 'evt_' || n FROM generate_series(0, $1::int - 1) AS n)`, old)
	deleted, err := dedup.NewStore(b.Schema).Purge(t.Context(), b.Pool, dedup.MinRetention, dedup.PurgeConfig{Consumer: consumer})
	require.NoError(t, err)
	require.EqualValues(t, old, deleted)
	tp.reset(t)
	return b, tp
}

// reset sets the group back to the beginning of the topic. The group must be empty.
func (tp *topic) reset(t *testing.T) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(tp.name, 0, 0, -1)
	require.NoError(t, tp.admin.CommitAllOffsets(t.Context(), tp.group, offsets))
}

// Case D14: rows were purged, and then Kafka delivered their messages again:
// each would have been handled a second time (wolverine#1725, NServiceBus outbox docs).
func TestTooOld_RedeliveredAfterAPurge(t *testing.T) {
	const old, young = 5, 3
	b, tp := forgotten(t, old, young)

	r := b.start(t, effect, inbox.Config{})
	r.awaitSettled(t, old+young)
	r.finish(t)

	require.Equal(t, old+young, b.count(t), "none twice")
	stats := r.in.Stats()
	require.EqualValues(t, []int64{old, young, 0}, []int64{stats.TooOld, stats.Duplicates, stats.Processed})
	letters := b.letters(t)
	require.Len(t, letters, old)
	for id, letter := range letters {
		require.Equal(t, dlq.TooOld, letter.Reason, id)
		require.Equal(t, tp.name, letter.Message.Origin.Topic)
		require.False(t, letter.Message.Origin.Time.IsZero())
	}
	require.EqualValues(t, old+young, tp.committed(t)[0], "the partition goes on")
}

// Case D14: a whole topic comes again after a purge, and a person who has set
// the group back by mistake finds a thousand dead letters (wolverine#1725).
// After a hundred intake is paused; the group is set right, and nothing else is
// to be done.
func TestTooOld_WholeTopicAgain(t *testing.T) {
	const old, young = 300, 3
	b, tp := forgotten(t, old, young)

	r := b.start(t, effect, inbox.Config{})
	await(t, "the pause", func() bool { return r.in.Stats().Paused })
	r.finish(t)
	require.Len(t, b.letters(t), 100)
	require.Equal(t, old+young, b.count(t), "none twice")
	require.EqualValues(t, 100, tp.committed(t)[0], "the rest stays where it is")
	require.True(t, b.log.has("level=ERROR", "a person must decide"))
}

// A topic with history is read from its beginning on purpose.
func TestTooOld_Run(t *testing.T) {
	const old, young = 150, 3
	b, _ := forgotten(t, old, young)

	r := b.start(t, effect, inbox.Config{TooOld: inbox.TooOldRun})
	r.awaitSettled(t, old+young)
	r.finish(t)

	require.EqualValues(t, old, r.in.Stats().Processed)
	require.EqualValues(t, young, r.in.Stats().Duplicates)
	require.Equal(t, 2*old+young, b.count(t))
	require.Empty(t, b.letters(t))
}
