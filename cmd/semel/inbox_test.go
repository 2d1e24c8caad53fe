package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/pgtest"
)

const tick = 20 * time.Millisecond

// shop is a consumer that keeps order and handles nothing of key "sad" until it is
// mended.
type shop struct {
	db     *pgtest.DB
	mended atomic.Bool
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{db: pgtest.New(t)}
	s.exec(t, `CREATE TABLE effects (n bigint GENERATED ALWAYS AS IDENTITY, id text NOT NULL)`)
	return s
}

func (s *shop) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := s.db.Pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func (s *shop) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	if _, err := tx.Exec(ctx, `INSERT INTO effects (id) VALUES ($1)`, msg.ID); err != nil {
		return err
	}
	switch {
	case s.mended.Load() || len(msg.Key) == 0:
		return nil
	case string(msg.Key) == "late":
		return errors.New("stock says later\x1b[2J")
	}
	return handler.Permanent(errors.New("no such order"))
}

// consumer makes a process of the consumer.
func (s *shop) consumer(t *testing.T, pool *pgxpool.Pool) *inbox.Inbox {
	t.Helper()
	in, err := inbox.New(pool, "shipping", s.handle, inbox.Config{
		Schema: s.db.Schema, Ordering: inbox.Strict, Logger: slog.New(slog.DiscardHandler),
		QuickDelay: time.Millisecond, QuickMaxDelay: 5 * time.Millisecond,
		Retry: inbox.Retry{Attempts: 8, Delay: time.Hour, MaxDelay: time.Hour},
	})
	require.NoError(t, err)
	return in
}

// works has a process work the inbox until stop is called, or the test ends.
func (s *shop) works(t *testing.T) (stop func()) {
	t.Helper()
	in := s.consumer(t, s.db.NewPool(t, 5))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- in.Work(ctx) }()
	var once atomic.Bool
	stop = func() {
		if !once.Swap(true) {
			cancel()
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	return stop
}

// send has messages handled, and says with what outcome.
func (s *shop) send(t *testing.T, want handler.Outcome, key string, ids ...string) {
	t.Helper()
	in := s.consumer(t, s.db.Pool)
	for _, id := range ids {
		msg := &handler.Message{ID: id, Type: "order.paid", Key: []byte(key), Payload: []byte(`{"id": 1}`), Headers: handler.Headers{{Name: "h", Value: []byte("v")}}}
		outcome, err := in.Process(t.Context(), msg)
		require.NoError(t, err)
		require.Equal(t, want, outcome)
	}
}

func (s *shop) effects(t *testing.T) (ids []string) {
	t.Helper()
	rows, err := s.db.Pool.Query(t.Context(), `SELECT id FROM effects ORDER BY n`)
	require.NoError(t, err)
	ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return ids
}

func (s *shop) letter(t *testing.T, id int64) *dlq.Letter {
	t.Helper()
	l, err := dlq.NewStore(s.db.Schema).Load(t.Context(), s.db.Pool, id)
	require.NoError(t, err)
	return l
}

func (s *shop) semel(t *testing.T, args ...string) result {
	t.Helper()
	return semel(t, s.db.URL, append(args, "-schema", s.db.Schema)...)
}

// fixed gives the rows times that golden files can hold.
func (s *shop) fixed(t *testing.T) {
	t.Helper()
	s.exec(t, `UPDATE inbox_messages SET stored_at = '2026-03-01 12:00Z', first_failed_at = first_failed_at - first_failed_at + '2026-03-01 12:00Z'::timestamptz,
		last_failed_at = last_failed_at - last_failed_at + '2026-03-01 12:00Z'::timestamptz, parked_at = parked_at - parked_at + '2026-03-01 12:01Z'::timestamptz,
		ready_at = CASE WHEN ready_at > clock_timestamp() THEN '2200-01-01Z'::timestamptz WHEN ready_at IS NOT NULL THEN '2026-03-01 12:02Z' END;
		UPDATE dead_letters SET first_failed_at = '2026-03-01 12:00Z', last_failed_at = '2026-03-01 12:00Z', created_at = '2026-03-01 12:00Z'`)
}

func TestInbox(t *testing.T) {
	t.Parallel()

	s := newShop(t)
	require.Equal(t, "nothing waits in the inbox\n", works(t, s.db, "inbox", "status"))
	require.JSONEq(t, `{"consumers": [], "at_least": false}`, works(t, s.db, "inbox", "status", "-json"))
	require.Equal(t, "no messages\n", works(t, s.db, "inbox", "list"))
	require.Equal(t, "[]\n", works(t, s.db, "inbox", "list", "-json"))

	s.send(t, handler.Stored, "late", "d1", "d2")
	s.send(t, handler.Dead, "sad", "p1")
	s.send(t, handler.Stored, "sad", "b1", "b2")
	_, err := s.consumer(t, s.db.Pool).Store(t.Context(), &handler.Message{ID: "r1", Type: "order.paid", Payload: []byte{0xff, 0}})
	require.NoError(t, err)
	_, err = s.consumer(t, s.db.Pool).Store(t.Context(), &handler.Message{ID: "x1", Key: []byte("x")})
	require.NoError(t, err)
	s.exec(t, `UPDATE inbox_messages SET attempts = -3, header_names = ARRAY['h', NULL], header_values = NULL WHERE message_text = 'x1'`)
	s.exec(t, `INSERT INTO inbox_messages (consumer_id, message_id, dead_letter_id, ready_at) VALUES (7, '00000000-0000-0000-0000-000000000007', 99, '2026-03-01')`)
	s.fixed(t)
	s.exec(t, `UPDATE inbox_messages SET ready_at = 'infinity' WHERE message_text = 'x1'`)

	tests := []struct {
		golden string
		args   []string
	}{
		{golden: "inbox_list.txt", args: []string{"list"}},
		{golden: "inbox_list_page.txt", args: []string{"list", "-limit", "2", "-after", "2"}},
		{golden: "inbox_list_behind.txt", args: []string{"list", "-state", "behind", "-key", "sad", "-consumer", "shipping", "-type", "order.paid"}},
		{golden: "inbox_list.json", args: []string{"list", "-json", "-state", "parked"}},
		{golden: "inbox_show_delayed.txt", args: []string{"show", "-consumer", "shipping", "d1"}},
		{golden: "inbox_show_parked.txt", args: []string{"show", "-consumer", "shipping", "p1"}},
		{golden: "inbox_show_behind.txt", args: []string{"show", "-consumer", "shipping", "b2"}},
		{golden: "inbox_show_behind.json", args: []string{"show", "-consumer", "shipping", "b2", "-json"}},
		{golden: "inbox_show_damaged.txt", args: []string{"show", "-consumer", "shipping", "x1"}},
		{golden: "inbox_run_now.txt", args: nil},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			var got string
			if tt.args != nil {
				got = works(t, s.db, append([]string{"inbox"}, tt.args...)...)
			} else {
				r := s.semel(t, "inbox", "run-now", "-consumer", "shipping", "d1", "d2", "r1", "p1", "b1", "d1")
				require.Equal(t, "semel: nothing was done: add -yes to do it\n", r.stderr)
				got = r.stdout
			}
			requireGolden(t, tt.golden, got)
			for _, r := range got {
				require.False(t, r != '\n' && r < ' ' || r >= 0x7f && r < 0xa0, "%U reaches the terminal", r)
			}
		})
	}

	t.Run("Status", func(t *testing.T) {
		s.exec(t, `UPDATE inbox_messages SET stored_at = clock_timestamp() - interval '40 days';
			UPDATE inbox_messages SET ready_at = clock_timestamp() - interval '73 hours' WHERE ready_at < clock_timestamp()`)
		requireGolden(t, "inbox_status.txt", works(t, s.db, "inbox", "status"))
		var st struct {
			Consumers []struct {
				Consumer                              string
				Ready, Delayed, Taken, Behind, Parked int
				OldestReady                           *float64 `json:"oldest_ready_seconds"`
				NextDue                               *string  `json:"next_due"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(works(t, s.db, "inbox", "status", "-json")), &st))
		require.Len(t, st.Consumers, 2)
		require.Equal(t, "shipping", st.Consumers[0].Consumer)
		require.Equal(t, []int{1, 2, 3, 1}, []int{st.Consumers[0].Ready, st.Consumers[0].Delayed, st.Consumers[0].Behind, st.Consumers[0].Parked})
		require.Positive(t, *st.Consumers[0].OldestReady)
		require.Equal(t, "2200-01-01T00:00:00Z", *st.Consumers[0].NextDue)
	})

	t.Run("BySeq", func(t *testing.T) {
		require.Equal(t, works(t, s.db, "inbox", "show", "-consumer", "shipping", "d1"), works(t, s.db, "inbox", "show", "-seq", "1"))
	})

	t.Run("Missing", func(t *testing.T) {
		require.Equal(t, result{"", "semel: load message \"nope\" of consumer \"shipping\": no such message in the inbox\n", 1}, s.semel(t, "inbox", "show", "-consumer", "shipping", "nope"))
		require.Equal(t, result{"", "semel: load message at seq 99: no such message in the inbox\n", 1}, s.semel(t, "inbox", "show", "-seq", "99"))
		require.Equal(t, result{"", "semel: load message \"nope\" of consumer \"shipping\": no such message in the inbox\n", 1}, s.semel(t, "inbox", "run-now", "-consumer", "shipping", "d1", "nope", "-yes"))
		require.Equal(t, result{"", "semel: no consumer \"billing\": there are shipping\n", 1}, s.semel(t, "inbox", "list", "-consumer", "billing"))
	})

	t.Run("RunNow", func(t *testing.T) {
		s.exec(t, `UPDATE inbox_messages SET ready_at = '2200-01-01', lease_owner = gen_random_uuid() WHERE message_text = 'r1'`)
		r := s.semel(t, "inbox", "run-now", "-consumer", "shipping", "d1", "d2", "r1", "p1", "b1", "-yes")
		require.Equal(t, 1, r.code)
		require.Equal(t, "semel: 4 of 5 messages were not changed\n", r.stderr)
		requireGolden(t, "inbox_run_now_yes.txt", r.stdout)
		r = s.semel(t, "inbox", "run-now", "-consumer", "shipping", "d1", "-yes", "-json")
		require.JSONEq(t, `[{"id": "d1", "changed": false, "state": "ready"}]`, r.stdout)
	})
}

func TestDLQ_Replay(t *testing.T) {
	t.Parallel()

	s := newShop(t)
	s.send(t, handler.Dead, "sad", "p1")
	s.send(t, handler.Stored, "sad", "p2")
	s.send(t, handler.Dead, "x", "x1")
	s.send(t, handler.Dead, "y", "y1")
	s.fixed(t)

	r := s.semel(t, "dlq", "replay", "1", "2")
	require.Equal(t, 1, r.code)
	require.Equal(t, "semel: nothing was done: add -yes to do it\n", r.stderr)
	requireGolden(t, "replay.txt", r.stdout)
	require.Equal(t, dlq.Open, s.letter(t, 1).State)
	require.Equal(t, result{"", "semel: load dead letter 99: no such dead letter\n", 1}, s.semel(t, "dlq", "replay", "1", "99", "-yes"))
	require.Equal(t, dlq.Open, s.letter(t, 1).State)

	// Nobody works the inbox: it waits.
	r = s.semel(t, "dlq", "replay", "1", "-yes", "-by", "ann")
	require.Zero(t, r.code, r.stderr)
	requireGolden(t, "replay_yes.txt", r.stdout)
	require.Equal(t, dlq.Replaying, s.letter(t, 1).State)
	require.Equal(t, "ann", s.letter(t, 1).DecidedBy)
	require.Contains(t, works(t, s.db, "inbox", "list", "-state", "ready"), "p1")

	s.exec(t, `UPDATE dead_letters SET redacted_at = clock_timestamp() WHERE id = 3`)
	require.Contains(t, works(t, s.db, "dlq", "discard", "2", "-yes", "-by", "bob"), "1 of 1 discarded\n")
	r = s.semel(t, "dlq", "replay", "1", "2", "3", "-yes", "-by", "ann")
	require.Equal(t, 1, r.code)
	require.Equal(t, "semel: 3 of 3 dead letters were not changed\n", r.stderr, r.stdout)
	require.Contains(t, r.stdout, "\n0 of 3 are handled again\n"+
		"1 is replaying: it is being handled again, decided by ann\n"+
		"2 is discarded: semel dlq replay -reopen 2 makes it a new message, decided by bob\n"+
		"3 is open: its payload was deleted\n")
	r = s.semel(t, "dlq", "discard", "2", "-yes", "-json")
	require.Equal(t, 1, r.code)
	require.JSONEq(t, `[{"id": 2, "changed": false, "state": "discarded", "why": "semel dlq replay -reopen 2 makes it a new message, decided by bob"}]`, r.stdout)
	r = s.semel(t, "dlq", "replay", "-reopen", "1", "3", "-yes")
	require.Contains(t, r.stdout, "3 is open: ")

	s.mended.Store(true)
	s.works(t)
	require.Eventually(t, func() bool { return s.letter(t, 1).State == dlq.Resolved }, deadline, tick)
	require.Eventually(t, func() bool { return len(s.effects(t)) == 2 }, deadline, tick)
	require.Equal(t, []string{"p1", "p2"}, s.effects(t))
	r = s.semel(t, "dlq", "discard", "1", "-yes")
	require.Contains(t, r.stdout, "1 is resolved: a replay was faster, decided by ann\n")
	r = s.semel(t, "dlq", "replay", "1", "-yes")
	require.Contains(t, r.stdout, "1 is resolved: a replay was faster, decided by ann\n")

	require.Contains(t, works(t, s.db, "dlq", "replay", "-reopen", "2", "-yes"), "1 of 1 are handled again as new messages\n")
	require.Eventually(t, func() bool { return s.letter(t, 2).State == dlq.Resolved }, deadline, tick)
	require.Equal(t, []string{"p1", "p2", "x1"}, s.effects(t))
	require.Contains(t, s.letter(t, 2).DecidedBy, "@", "who runs the program, and where")
}

func TestDLQ_ReplayMany(t *testing.T) {
	t.Parallel()

	const n = 30
	s := newShop(t)
	var want []string
	for i := range n {
		id := fmt.Sprintf("m%02d", i)
		s.send(t, handler.Dead, id, id)
		want = append(want, id)
	}
	s.fixed(t)
	s.exec(t, `UPDATE dead_letters SET owner = 'ann' WHERE id <= 12`)

	r := s.semel(t, "dlq", "replay", "-consumer", "shipping", "-reason", "permanent")
	require.Equal(t, 1, r.code)
	require.Equal(t, "semel: nothing was done: add -yes to do it\n", r.stderr)
	requireGolden(t, "replay_many.txt", r.stdout)
	require.Equal(t, result{"", "semel: no consumer \"nobody\": there are shipping\n", 1}, s.semel(t, "dlq", "replay", "-consumer", "nobody", "-yes"))
	require.Equal(t, "no dead letters\n", works(t, s.db, "dlq", "replay", "-consumer", "shipping", "-reason", "exhausted"))
	r = s.semel(t, "dlq", "replay", "-owner", "ann", "-limit", "2", "-json")
	require.JSONEq(t, `{"ids": [1, 2]}`, r.stdout)

	// Nothing is mended: it stops before all are through.
	stop := s.works(t)
	r = s.semel(t, "dlq", "replay", "-consumer", "shipping", "-rate", "3/s", "-stop-after", "3", "-yes")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "the replayed messages die again")
	open, err := dlq.NewStore(s.db.Schema).Count(t.Context(), s.db.Pool, dlq.Filter{State: dlq.Open})
	require.NoError(t, err)
	require.GreaterOrEqual(t, open, int64(3))
	require.Eventually(t, func() bool {
		open, err := dlq.NewStore(s.db.Schema).Count(t.Context(), s.db.Pool, dlq.Filter{State: dlq.Open})
		return err == nil && open == n
	}, deadline, tick)
	require.Equal(t, 1, s.letter(t, n).Attempts, "the last one was not tried again")
	stop()

	// Mended, but nobody works the inbox.
	s.mended.Store(true)
	require.JSONEq(t, `{"chosen": 12, "begun": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], "refused": [], "handled": 0, "superseded": 0, "skipped": 0, "died_again": 0, "waiting": 12, "stopped": false}`,
		works(t, s.db, "dlq", "replay", "-owner", "ann", "-rate", "1000/s", "-yes", "-json"))
	s.works(t)
	require.Eventually(t, func() bool { return len(s.effects(t)) == 12 }, deadline, tick)
	out := works(t, s.db, "dlq", "replay", "-consumer", "shipping", "-rate", "1000/s", "-yes")
	require.Contains(t, out, "handles again 18 dead letters, the oldest first, 1000/s:\n")
	require.Contains(t, out, "\n18 of 18 are handled again: ")
	require.Eventually(t, func() bool { return len(s.effects(t)) == n }, deadline, tick)
	require.ElementsMatch(t, want, s.effects(t))
}
