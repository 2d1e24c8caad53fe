package outbox

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/pgtest"
)

// noPublisher is never asked.
type noPublisher struct{ handler.Publisher }

// newRun is a relay that does nothing by itself, and owns the lease of shard 0
// under epoch 5.
func newRun(t *testing.T) (*relayRun, *pgtest.DB) {
	t.Helper()
	db := pgtest.New(t)
	relay, err := NewRelay(db.NewPool(t, 4), noPublisher{}, RelayConfig{Schema: db.Schema, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	run := relay.newRun(t.Context())
	_, err = db.Pool.Exec(t.Context(), `UPDATE relay_leases SET owner = $1, epoch = 5, expires_at = clock_timestamp() + interval '1 h' WHERE lo = 0`, run.id)
	require.NoError(t, err)
	run.held.put(0, &lease{epoch: 5, until: time.Now().Add(time.Hour), loaded: true})
	return run, db
}

func owner(t *testing.T, db *pgtest.DB) (id *uuid.UUID) {
	t.Helper()
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT owner FROM relay_leases WHERE lo = 0`).Scan(&id))
	return id
}

// An event was dropped because its lease had run out, others of its batch were
// not. When the lease is prolonged, the next one of its aggregate must not be
// there any more: it would go out first.
func TestTakeBatch_LeaseRunsOutAndIsProlonged(t *testing.T) {
	t.Parallel()

	run, _ := newRun(t)
	run.held.put(4, &lease{epoch: 7, until: time.Now().Add(time.Hour)})
	a, x := aggregate{"order", "a"}, aggregate{"order", "x"}
	l := run.lane("order")
	for _, e := range []*event{
		{seq: 1, lo: 0, epoch: 5, aggregate: a}, {seq: 2, lo: 4, epoch: 7, aggregate: x}, {seq: 3, lo: 0, epoch: 5, aggregate: a},
	} {
		e.msg = &handler.Message{}
		run.inMind[e.seq] = e
		l.queue = append(l.queue, e)
	}
	run.held.at(0).until = time.Now()

	batch := run.takeBatch(l, 1)
	run.held.at(0).until = time.Now().Add(time.Hour)

	require.Len(t, batch, 1)
	require.EqualValues(t, 2, batch[0].seq)
	require.Empty(t, run.takeBatch(l, 1))
	require.True(t, run.restart, "the reader finds both again")
}

// The answer to giving a lease back was lost, and then it falls to us again:
// others may own it by now. It is ours only once it was taken anew.
func TestLetGo_AnswerLost(t *testing.T) {
	t.Parallel()

	run, db := newRun(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	require.Error(t, run.letGo(ctx, nil))
	require.NoError(t, run.letGo(t.Context(), []int16{0}))

	require.Empty(t, run.held)
	require.Nil(t, owner(t, db))
}

// A statement that comes late does not give back what was taken anew.
func TestLetGo_Late(t *testing.T) {
	t.Parallel()

	run, db := newRun(t)
	run.held.at(0).epoch = 4

	require.NoError(t, run.letGo(t.Context(), nil))

	require.Equal(t, run.id, *owner(t, db))
}

// The database says that a lease is ours, under an epoch that we do not know:
// it was taken by a statement whose answer was lost. It is not read while
// something of the epoch before is on its way.
func TestRenew_TakenUnknowingly(t *testing.T) {
	t.Parallel()

	run, _ := newRun(t)
	run.held.at(0).epoch = 4
	run.inMind[1] = &event{seq: 1, lo: 0, epoch: 4, msg: &handler.Message{}}

	require.NoError(t, run.renew(t.Context()))
	require.Empty(t, run.held)

	clear(run.inMind)
	require.NoError(t, run.renew(t.Context()))
	require.EqualValues(t, 5, run.held.at(0).epoch)
}

// A lease is lost and taken anew while the reader waits for the database, so
// that it sees the same shards as before. It must read them from the start.
func TestTake_LostInBetween(t *testing.T) {
	t.Parallel()

	run, db := newRun(t)
	rd := &reader{relayRun: run}
	rd.prepare()
	run.floor = 100
	ahead := run.lane("order")
	ahead.resume = 90
	rd.prepare()
	require.EqualValues(t, 100, run.floor)

	_, err := db.Pool.Exec(t.Context(), `UPDATE relay_leases SET owner = NULL, epoch = 6 WHERE lo = 0`)
	require.NoError(t, err)
	run.lose(0)
	require.NoError(t, run.take(t.Context(), []int16{0}))
	run.held.at(0).loaded = true

	rd.prepare()
	require.Zero(t, run.floor)
	require.EqualValues(t, 1, ahead.resume, "a lane that goes alone begins anew too")
}

// Once an event has failed nothing of its aggregate waits in the lane: the
// reader may let it go on before the lane is looked at again.
func TestSort_EmptiesTheLane(t *testing.T) {
	t.Parallel()

	run, _ := newRun(t)
	a, x := aggregate{"order", "a"}, aggregate{"order", "x"}
	l := run.lane("order")
	var events []*event
	for i, of := range []aggregate{a, x, a, x} {
		e := &event{seq: int64(i + 1), epoch: 5, aggregate: of, msg: &handler.Message{}}
		run.inMind[e.seq] = e
		events = append(events, e)
	}
	l.queue = slices.Clone(events[2:])

	run.sort(l, events[:2:2], []error{handler.Unavailable(errNoAnswer), nil}, func(bool) {})

	require.Equal(t, events[3:], l.queue)
	require.NotContains(t, run.inMind, int64(3))
}

// A lease was lost and taken anew while events were on their way: one batch has
// confirmations of both epochs. What was sent under the one that has passed is not
// noted, whatever the row says of the other.
func TestNotePublished_TwoEpochsOfALease(t *testing.T) {
	t.Parallel()

	for _, done := range []Done{Mark, Delete} {
		run, db := newRun(t)
		run.cfg.Done = done
		events := insertEvents(t, db, 4)
		events[1].epoch, events[3].epoch = 5, 5

		require.NoError(t, run.notePublished(events))

		var left []int64
		require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT array_agg(seq ORDER BY seq) FROM outbox WHERE published_at IS NULL`).Scan(&left))
		require.Equal(t, []int64{events[0].seq, events[2].seq}, left)
		require.EqualValues(t, 2, run.Stats().Stale)
	}
}

// The rows of one of two epochs are noted, and a row of the other one is locked: what is
// noted is not noted again.
func TestNoteAll_TwoEpochsAndALock(t *testing.T) {
	t.Parallel()

	run, db := newRun(t)
	events := insertEvents(t, db, 2)
	events[1].epoch = 5
	person, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = person.Exec(t.Context(), `SELECT FROM outbox WHERE seq = $1 FOR UPDATE`, events[1].seq)
	require.NoError(t, err)

	err = run.noteAll([]result{{event: events[0]}, {event: events[1]}})

	require.NoError(t, person.Rollback(t.Context()))
	require.ErrorContains(t, err, "has locked the rows of 1 events")
	require.EqualValues(t, 1, run.Stats().Stale)
	require.Equal(t, events[:1], run.forget)
	require.NoError(t, run.noteAll([]result{{event: events[1]}}))
	require.EqualValues(t, 1, run.Stats().Stale)
}

// insertEvents returns events of shards whose lease is 0, read under epoch 4.
func insertEvents(t *testing.T, db *pgtest.DB, n int) []*event {
	t.Helper()
	rows, err := db.Pool.Query(t.Context(), `
		INSERT INTO outbox (id, aggregatetype, aggregateid, type)
		SELECT gen_random_uuid(), 'order', n::text, 'OrderPaid'
		FROM generate_series(1, 10000) AS n WHERE shard('order', n::text) < 4 LIMIT $1
		RETURNING id, seq`, n)
	require.NoError(t, err)
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*event, error) {
		e := &event{epoch: 4, aggregate: aggregate{"order", ""}}
		return e, row.Scan(&e.id, &e.seq)
	})
	require.NoError(t, err)
	require.Len(t, events, n)
	return events
}
