package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
)

// The sum of a run must show every way in which it can be wrong.
func TestCountEvents(t *testing.T) {
	t.Parallel()
	const one = `kind = 'account' AND aggregate = 'buyer-1' AND version = 1`

	tests := []struct {
		name                          string
		plant                         string
		committed                     int64 // beyond what is
		lost, doubled, reordered, off int64
	}{
		{name: "NothingWrong"},
		{name: "Copies", plant: `INSERT INTO topic_records SELECT kind, aggregate, version, message, place + 100 FROM topic_records`},
		{name: "EventLost", plant: `DELETE FROM topic_records WHERE ` + one, lost: 1},
		{name: "LastEventLost", plant: `DELETE FROM topic_records WHERE kind = 'order' AND version = 2`, lost: 1},
		{name: "AllLost", plant: `DELETE FROM topic_records`, lost: 9},
		{name: "CommitGone", committed: 1, lost: 3},
		{name: "EventWithAnotherID", plant: `INSERT INTO topic_records SELECT kind, aggregate, version, gen_random_uuid(), place FROM topic_records WHERE ` + one, doubled: 1},
		{name: "RolledBackYetPublished", plant: `INSERT INTO topic_records VALUES ('account', 'buyer-1', 3, 'another', 100)`, doubled: 1},
		{name: "OfNobody", plant: `INSERT INTO topic_records VALUES ('account', 'nobody', 1, 'another', 100)`, doubled: 1},
		{name: "UnknownType", plant: `UPDATE topic_records SET kind = '' WHERE ` + one, lost: 1, doubled: 1},
		{name: "Reordered", plant: `UPDATE topic_records SET place = 100 WHERE ` + one, reordered: 1},
		{name: "CopyOnlyReordered", plant: `INSERT INTO topic_records SELECT kind, aggregate, version, message, 100 FROM topic_records WHERE ` + one},
		{name: "EntryTwice", plant: `INSERT INTO entries SELECT * FROM entries WHERE account = 'buyer-1' AND sequence = 1`, lost: 1, off: 2},
		{name: "EntryGone", plant: `DELETE FROM entries WHERE account = 'buyer-1' AND sequence = 1`, doubled: 1, off: 2},
		{name: "LegsDiffer", plant: `UPDATE entries SET amount = amount - 1 WHERE account = 'buyer-1' AND sequence = 1`, off: 2},
		{name: "LegsOfAnotherAmount", plant: `UPDATE postings SET amount = 31 WHERE amount = 30`, off: 1},
		{name: "BalanceOff", plant: `UPDATE accounts SET balance = balance + 1 WHERE id = 'seller-2/pending'`, off: 1},
		{name: "IdleBalanceOff", plant: `UPDATE accounts SET balance = balance + 1 WHERE id = 'buyer-9'`, off: 1},
		{name: "SequenceOff", plant: `UPDATE accounts SET sequence = sequence + 1 WHERE id = 'buyer-1'`, off: 1},
		{name: "PostingGone", plant: `DELETE FROM postings WHERE amount = 30`, committed: -1, off: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			require.NoError(t, b.book(t.Context(), []posting{
				payment("order-1", "buyer-1", "seller-1/pending", 100),
				payment("order-2", "buyer-1", "seller-2/pending", 30),
				{id: outbox.NewID(), order: "order-1", status: settled, sequence: 2, from: "seller-1/pending", to: "seller-1/available", amount: 100},
			}))
			b.publish(t)

			if tt.plant != "" {
				b.Exec(t, tt.plant)
			}

			sum := result{offered: 9, length: time.Second}
			var err error
			sum.counts, err = countEvents(t.Context(), b.Pool, b.Name, 3+tt.committed)
			require.NoError(t, err)
			require.Equal(t, []int64{tt.lost, tt.doubled, tt.reordered, tt.off}, []int64{sum.lost, sum.doubled, sum.reordered, sum.off})
			require.Equal(t, tt.lost+tt.doubled == 0, sum.OK())
			require.Equal(t, tt.reordered+tt.off == 0, sum.check() == nil)
			require.EqualValues(t, 9, sum.published)
		})
	}
}

// An event that no relay has published is lost where it counts, and no success.
func TestCountEvents_Unpublished(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.book(t.Context(), []posting{payment("order-1", "buyer-1", "seller-1/pending", 100)}))

	counted, err := countEvents(t.Context(), b.Pool, b.Name, 1)

	require.NoError(t, err)
	require.EqualValues(t, 3, counted.lost)
	require.EqualValues(t, 3, counted.written)
	require.Zero(t, counted.published)
}

// Lag and rate are those of the table: of 100 events one waited for 5 s, all others
// for 1 s, and they were published within 10 s.
func TestCountEvents_Times(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Exec(t, `
		INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, created_at, published_at)
		SELECT gen_random_uuid(), 'account', 'buyer-1', 'EntryPosted',
		       p.at - CASE WHEN n = 50 THEN interval '5 s' ELSE interval '1 s' END, p.at
		FROM generate_series(0, 100) AS n
		CROSS JOIN LATERAL (SELECT timestamptz '2024-01-01' + n * interval '0.1 s' AS at) AS p`)

	sum := result{offered: 20, length: 5 * time.Second}
	var err error
	sum.counts, err = countEvents(t.Context(), b.Pool, b.Name, 0)

	require.NoError(t, err)
	require.Equal(t, []time.Duration{time.Second, time.Second, 5 * time.Second}, sum.lag)
	require.Equal(t, 10, sum.achieved())
	require.Equal(t, "RESULT offered=20 achieved=10 send_success=101 send_fail=0 lag_p99_ms=1000 lost=0 doubled=0", sum.String())
	b.Exec(t, `UPDATE semel.outbox SET attempts = 1 WHERE seq <= 3`)
	sum.counts, err = countEvents(t.Context(), b.Pool, b.Name, 0)
	require.NoError(t, err)
	require.EqualValues(t, 3, sum.sendFail(), "the relay that knew was killed")
	sum.length = 20 * time.Second
	require.Equal(t, 5, sum.achieved(), "it cannot be more than was offered")
}
