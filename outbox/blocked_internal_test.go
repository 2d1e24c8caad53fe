package outbox

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

// A lease is lost while the reader waits for what its rows hold back. What it then hears
// of an aggregate that is another's is forgotten: the relay would ask for that event at
// each look, and take nothing else.
func TestLoadSpan_LeaseLostMeanwhile(t *testing.T) {
	t.Parallel()

	run, db := newRun(t)
	_, err := db.Pool.Exec(t.Context(), `
		INSERT INTO outbox (id, aggregatetype, aggregateid, type, next_attempt_at)
		SELECT gen_random_uuid(), 'order', n::text, 'OrderPaid', now()
		FROM generate_series(1, 10000) AS n WHERE shard('order', n::text) < 4 LIMIT 1`)
	require.NoError(t, err)
	rd := &reader{relayRun: run}
	epochs := run.epochs([]span{{0, 3}})

	_, err = rd.loadSpan(t.Context(), span{0, 3}, epochs)
	require.NoError(t, err)
	require.Len(t, run.blocked, 1)

	run.lose(0)
	require.Empty(t, run.blocked)
	_, err = rd.loadSpan(t.Context(), span{0, 3}, epochs)
	require.NoError(t, err)
	require.Empty(t, run.blocked)
}

// The head of a blocked aggregate is due. It is not tried while its lease is not read, nor
// while an earlier event of its aggregate is on its way: somebody parked it by hand.
func TestPrepare_HeadsThatMustWait(t *testing.T) {
	t.Parallel()

	run, _ := newRun(t)
	rd := &reader{relayRun: run}
	a := aggregate{"order", "a"}
	id := pgtype.UUID{Bytes: [16]byte{1}, Valid: true}
	run.blocked[a] = &block{lo: 0, seq: 3, id: id, due: time.Now().Add(-time.Second)}
	require.Equal(t, []pgtype.UUID{id}, rd.prepare().due)

	run.held.at(0).leaving = true
	require.Empty(t, rd.prepare().due)
	run.held.at(0).leaving = false

	run.inMind[2] = &event{seq: 2, aggregate: a, msg: &handler.Message{}}
	require.Empty(t, rd.prepare().due)
	clear(run.inMind)
	require.Len(t, rd.prepare().due, 1)
}

// A backlog that is held back is passed over without its payloads, also where they are so
// large that a read has room for few: else what was written behind it would wait for it.
func TestIsSparse(t *testing.T) {
	t.Parallel()

	rd := &reader{relayRun: &relayRun{Relay: &Relay{cfg: RelayConfig{Batch: 100}}}}
	require.True(t, rd.isSparse(reading{heldBack: 50, taken: 49}))
	require.False(t, rd.isSparse(reading{heldBack: 49}), "so few cost nothing")
	require.True(t, rd.isSparse(reading{heldBack: 8, cut: true}))
	require.False(t, rd.isSparse(reading{heldBack: 8, taken: 8, cut: true}))
}

// Where events are so large that a read had no room for all it asked for, the next one
// asks for fewer, and then for more again.
func TestRoom(t *testing.T) {
	t.Parallel()

	rd := &reader{relayRun: &relayRun{Relay: &Relay{cfg: RelayConfig{Batch: 100}, ordered: true}}}
	c := &cursor{gait: &gait{}}
	read := func(n int, cut bool) {
		c.limit = c.gait.room(400)
		events := make([]*event, n)
		for i := range events {
			events[i] = &event{cut: cut && i == n-1}
		}
		require.Equal(t, cut, rd.learn(c, events))
	}
	require.Equal(t, 400, c.gait.room(400))

	read(3, true)
	require.Equal(t, 3, c.gait.room(400))
	read(2, false)
	require.Equal(t, 3, c.gait.room(400), "it found no more")
	read(3, false)
	require.Equal(t, 6, c.gait.room(400))
	for range 8 {
		read(c.gait.room(400), false)
	}
	require.Equal(t, 400, c.gait.room(400))
}
