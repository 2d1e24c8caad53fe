package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// Rows that no writer of ours makes: times without end, arrays with nothing in
// them or in two dimensions. A row that cannot be read would keep all events from
// being read that come with it, of all aggregates, for ever.
func TestRelay_RowsByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `
		INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, payload, occurred_at, version, header_names, header_values, header_tags)
		VALUES
			(gen_random_uuid(), 'order', 'for ever', 'OrderPaid', '1', 'infinity', 1, NULL, NULL, NULL),
			(gen_random_uuid(), 'order', 'since ever', 'OrderPaid', '2', '-infinity', 1, NULL, NULL, NULL),
			(gen_random_uuid(), 'order', 'no name', 'OrderPaid', '3', NULL, 1, '{NULL,a}', '{"\\x31","\\x32"}', NULL),
			(gen_random_uuid(), 'order', 'two dimensions', 'OrderPaid', '4', NULL, 1, '{{a,b},{c,d}}', '{{"\\x31","\\x32"},{"\\x33",NULL}}', '--'),
			(gen_random_uuid(), 'order', 'nothing in it', 'OrderPaid', '5', NULL, 1, '{}', '{}', ''),
			(gen_random_uuid(), 'order', 'no values', 'OrderPaid', '6', NULL, 1, '{a,b}', NULL, 'SSSS'),
			(gen_random_uuid(), '', '', '', NULL, NULL, NULL, NULL, NULL, NULL)`)
	b.write(t, order("ours", 1))
	p := &recorder{ordered: true}
	relay := b.relay(t, p, outbox.RelayConfig{})

	b.awaitPublished(t, 8)
	relay.stop()

	got := map[string]*handler.Message{}
	for _, m := range p.messages() {
		got[string(m.Key)] = m
	}
	require.Len(t, got, 8)
	for _, key := range []string{"for ever", "since ever"} {
		require.WithinDuration(t, time.Now(), got[key].OccurredAt, deadline, "when it was written stands for a time that is none")
	}
	require.Equal(t, handler.Headers{{Name: "", Value: []byte("1")}, {Name: "a", Value: []byte("2")}}, got["no name"].Headers)
	require.Equal(t, handler.Headers{
		{Name: "a", Value: []byte("1")}, {Name: "b", Value: []byte("2")}, {Name: "c", Value: []byte("3")}, {Name: "d"},
	}, got["two dimensions"].Headers)
	require.Empty(t, got["nothing in it"].Headers)
	require.Equal(t, handler.Headers{{Name: "a", Tag: 'S'}, {Name: "b", Tag: 'S'}}, got["no values"].Headers)
	require.Equal(t, "1", string(got["for ever"].Payload))
	require.Nil(t, got[""].Payload)
	require.NotEmpty(t, got["ours"].ID)

	store := outbox.NewStore(b.Schema)
	for _, m := range got {
		record, err := store.Load(t.Context(), b.Pool, m.ID)
		require.NoError(t, err)
		require.Equal(t, m.Headers, record.Headers)
	}
	deleted, err := store.Purge(t.Context(), b.Pool, 0, outbox.PurgeConfig{Archive: outbox.DirectoryArchive(t.TempDir())})
	require.NoError(t, err)
	require.EqualValues(t, 8, deleted)
}

// Somebody parks an event: it waits for ever, and so does what follows of its
// aggregate. All others go on, and the figures say so.
func TestRelay_ParkedByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.write(t, order("parked", 1))
	b.exec(t, `UPDATE semel.outbox SET next_attempt_at = 'infinity', created_at = '0001-01-01Z'`)
	b.write(t, order("parked", 2), order("free", 1))
	p := &recorder{ordered: true}
	b.relay(t, p, outbox.RelayConfig{})

	b.awaitPublished(t, 1)

	require.Equal(t, "free", string(p.messages()[0].Key))
	status, err := outbox.NewStore(b.Schema).Status(t.Context(), b.Pool)
	require.NoError(t, err)
	require.EqualValues(t, 1, status.Total().Waiting)
	records, err := outbox.NewStore(b.Schema).List(t.Context(), b.Pool, outbox.Filter{State: outbox.StateWaiting})
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.Greater(t, status.Total().Oldest, time.Duration(0))
	b.exec(t, `UPDATE semel.outbox SET next_attempt_at = '-infinity' WHERE aggregateid = 'parked' AND version = 1`)
	b.awaitPublished(t, 3)
}

// What stands before a parked event goes out, what stands behind it waits: until it is
// discarded, and also where it is due while the ones before it are still on their way.
func TestRelay_ParkedAmongOthers(t *testing.T) {
	t.Parallel()

	for _, end := range []string{`next_attempt_at = '-infinity'`, `next_attempt_at = NULL`, `discarded_at = now()`} {
		b := setup(t)
		b.write(t, order("a", 1), order("a", 2), order("a", 3), order("a", 4))
		b.exec(t, `UPDATE semel.outbox SET next_attempt_at = 'infinity' WHERE version = 3`)
		p := &recorder{ordered: true}
		b.relay(t, p, outbox.RelayConfig{})

		b.awaitPublished(t, 2)
		b.exec(t, `UPDATE semel.outbox SET `+end+` WHERE version = 3`)

		want := []int64{1, 2, 3, 4}
		if strings.HasPrefix(end, "discarded") {
			want = []int64{1, 2, 4}
		}
		b.awaitPublished(t, len(want))
		var got []int64
		for _, m := range p.messages() {
			got = append(got, m.Version)
		}
		require.Equal(t, want, got, "PROMISE BROKEN: reordered, %s", end)
	}
}

// One aggregate has more parked events than a relay reads at once. It does not hide that
// others are held back too: their second events would go out before their first ones.
func TestRelay_ManyParkedOfOneAggregate(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, next_attempt_at)
		SELECT gen_random_uuid(), 'order', 'parked', 'OrderPaid', 'infinity' FROM generate_series(1, 100)`)
	const others = 4
	for n := range others {
		id := fmt.Sprint("other", n)
		b.write(t, order(id, 1), order(id, 2))
	}
	b.exec(t, `UPDATE semel.outbox SET next_attempt_at = now() + interval '1 s' WHERE version = 1`)
	p := &recorder{ordered: true}
	b.relay(t, p, outbox.RelayConfig{MaxBlocked: 10})

	b.awaitPublished(t, 2*others)
	requireOrder(t, p.messages(), 2*others)
}

// More aggregates are held back than a relay may know of. It publishes nothing new until
// it knows all of them.
func TestRelay_MoreHeldBackThanItKnows(t *testing.T) {
	t.Parallel()

	b := setup(t)
	const aggregates = 40
	for n := range aggregates {
		b.write(t, order(fmt.Sprint(n), 1), order(fmt.Sprint(n), 2))
	}
	b.exec(t, `UPDATE semel.outbox SET next_attempt_at = now() WHERE version = 1`)
	p := &recorder{ordered: true}
	b.relay(t, p, outbox.RelayConfig{MaxBlocked: 5})

	b.awaitPublished(t, 2*aggregates)
	requireOrder(t, p.messages(), 2*aggregates)
}

// A failed attempt that cannot be noted, for what somebody's trigger says, keeps no other
// failure from being noted; and numbers at their end fail nothing.
func TestRelay_FailureThatCannotBeNoted(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.write(t, order("refused", 1), order("most attempts", 1), order("negative", 1), order("late", 1), order("early", 1), order("plain", 1))
	b.exec(t, `
		UPDATE semel.outbox SET
			attempts = CASE aggregateid WHEN 'most attempts' THEN 2147483647 WHEN 'negative' THEN -2147483648 ELSE 0 END,
			lease_attempts = CASE aggregateid WHEN 'most attempts' THEN 2147483647 WHEN 'negative' THEN -2147483648 ELSE 0 END,
			first_failed_at = CASE aggregateid WHEN 'late' THEN '294276-12-31Z'::timestamptz WHEN 'early' THEN '-infinity' END,
			lease_epoch = 1`)
	b.exec(t, `
		CREATE FUNCTION semel.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
		CREATE TRIGGER refuse BEFORE UPDATE ON semel.outbox FOR EACH ROW WHEN (new.aggregateid = 'refused') EXECUTE FUNCTION semel.refuse()`)
	relay := b.relay(t, &recorder{ordered: true, answer: func(context.Context, *handler.Message) error {
		return errors.New("no")
	}}, quick())

	noted := func() int {
		return query[int](t, b, `SELECT count(*)::int FROM semel.outbox WHERE last_error IS NOT NULL`)
	}
	require.Eventually(t, func() bool { return noted() == 5 }, deadline, tick)
	b.exec(t, `DROP TRIGGER refuse ON semel.outbox`)
	require.Eventually(t, func() bool { return noted() == 6 }, deadline, tick)
	relay.stop()
	require.Equal(t, "quarantined", query[string](t, b, `SELECT state FROM semel.events WHERE aggregateid = 'early'`))
}

// A publisher that writes to a message harms nobody's row.
func TestRelay_PublisherWritesToTheMessage(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.write(t, order("a", 1))
	relay := b.relay(t, &recorder{ordered: true, answer: func(_ context.Context, msg *handler.Message) error {
		msg.ID = "changed"
		return handler.Permanent(errors.New("no"))
	}}, quick())

	require.Eventually(t, func() bool { return relay.Stats().Kinds["order"].Quarantined == 1 }, deadline, tick)
	b.awaitStates(t, "a", "quarantined")
}

// Somebody has set the epochs of the leases back, made a dead relay and its lease live
// for ever, and added a lease that has no shards.
func TestRelay_LeasesByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `
		UPDATE semel.relay_leases SET epoch = -1;
		INSERT INTO semel.relays (id, name, alive_until, started_at) VALUES ('00000000-0000-7000-8000-000000000001', 'dead', 'infinity', '-infinity');
		UPDATE semel.relay_leases SET owner = '00000000-0000-7000-8000-000000000002', expires_at = 'infinity' WHERE lo = 0;
		INSERT INTO semel.relay_leases (lo, hi) VALUES (256, 511), (-4, -1)`)
	status, err := outbox.NewStore(b.Schema).Status(t.Context(), b.Pool)
	require.NoError(t, err)
	require.GreaterOrEqual(t, status.UnownedShards, 256)
	cfg := quick()
	cfg.Lease = 3 * time.Second
	relay := b.relay(t, &recorder{ordered: true}, cfg)
	require.Eventually(t, func() bool {
		return query[int](t, b, `SELECT count(*)::int FROM semel.relay_leases WHERE owner IN (SELECT id FROM semel.relays)`) == 64
	}, deadline, tick)

	b.exec(t, `UPDATE semel.relay_leases SET epoch = 0`)
	b.exec(t, `UPDATE semel.relay_leases SET owner = (SELECT id FROM semel.relays) WHERE lo = 256 OR lo = -4`)
	const events = 100
	for n := range events {
		b.write(t, order(fmt.Sprint(n), 1))
	}

	b.awaitPublished(t, events)
	relay.stop()
}

// The tables were restored, or replicated, without their sequences. A relay says so: it
// would not see what stands beyond them.
func TestRelay_SequenceBehind(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.write(t, order("a", 1), order("a", 2))
	b.exec(t, `SELECT setval('outbox_seq_seq', 1)`)
	relay, err := outbox.NewRelay(b.Pool, &recorder{}, outbox.RelayConfig{Schema: b.Schema})
	require.NoError(t, err)

	err = relay.Run(t.Context())

	require.ErrorContains(t, err, "the sequence of the outbox stands at 1, and an event with seq 2 waits")
	_, repair, found := strings.Cut(err.Error(), "and run ")
	require.True(t, found)
	b.exec(t, repair)
	p := &recorder{ordered: true}
	b.relay(t, p, outbox.RelayConfig{})
	b.awaitPublished(t, 2)
}

// Somebody looks at two events in a transaction and goes to lunch. No other waits for that
// to be noted, whether it was published or failed, and none is published twice.
func TestRelay_LockedByHand(t *testing.T) {
	t.Parallel()

	for _, done := range []outbox.Done{outbox.Mark, outbox.Delete} {
		b := setup(t)
		const free = 50
		b.write(t, order("good locked", 1), order("bad locked", 1))
		for n := range free {
			b.write(t, order(fmt.Sprint("good", n), 1), order(fmt.Sprint("bad", n), 1))
		}
		lunch := b.begin(t)
		_, err := lunch.Exec(t.Context(), `SELECT FROM outbox WHERE aggregateid LIKE '% locked' FOR UPDATE`)
		require.NoError(t, err)
		p := &recorder{ordered: true, answer: func(_ context.Context, msg *handler.Message) error {
			if strings.HasPrefix(string(msg.Key), "bad") {
				return handler.Permanent(errors.New("no"))
			}
			return nil
		}}
		cfg := quick()
		cfg.Done, cfg.StatementTimeout = done, 2*deadline // nothing may wait for as long
		relay := b.relay(t, p, cfg)
		noted := func(good, bad int64) func() bool {
			return func() bool {
				k := relay.Stats().Kinds["order"]
				return k.Sent == good && k.Quarantined == bad
			}
		}

		require.Eventually(t, noted(free, free), deadline, tick)
		require.NoError(t, lunch.Rollback(t.Context()))
		require.Eventually(t, noted(free+1, free+1), deadline, tick)
		relay.stop()
		require.Len(t, p.messages(), free+1)
		require.Zero(t, relay.Stats().Stale)
	}
}

// An event is locked by hand, and its shards are to go to another relay. They go: the
// next owner publishes it once more, under its id, sooner than everything behind it waits.
func TestRelay_LockedByHandWhileItsShardsMove(t *testing.T) {
	t.Parallel()

	for _, answer := range []error{nil, errNo} {
		b := setup(t)
		// The second relay gets the upper half of the shards.
		id := query[string](t, b, `SELECT n::text FROM generate_series(1, 1000) AS n WHERE shard('order', n::text) >= 128 LIMIT 1`)
		b.write(t, order(id, 1))
		lunch := b.begin(t)
		_, err := lunch.Exec(t.Context(), `SELECT FROM outbox FOR UPDATE`)
		require.NoError(t, err)
		var asked atomic.Int64
		first := b.relay(t, &recorder{ordered: true, answer: func(context.Context, *handler.Message) error {
			asked.Add(1)
			return answer
		}}, quick())
		require.Eventually(t, func() bool { return asked.Load() > 0 }, deadline, tick)

		second := b.relay(t, &recorder{ordered: true}, quick())

		require.Eventually(t, func() bool {
			return query[bool](t, b, `SELECT count(*) = 2 AND max(n) = 32 FROM (SELECT count(*) AS n FROM relay_leases GROUP BY owner) AS o`)
		}, deadline, tick, "the relays share the shards")
		require.EqualValues(t, 1, first.Stats().Stale)
		require.NoError(t, lunch.Rollback(t.Context()))
		require.Eventually(t, func() bool { return second.Stats().Kinds["order"].Sent == 1 }, deadline, tick)
		first.stop()
		second.stop()
	}
}
