package inbox_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// dies is the handler of a message that is dead until something is mended.
func dies(mended *atomic.Bool) handler.Func {
	return func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if !mended.Load() {
			return handler.Permanent(errors.New("unknown account"))
		}
		return effect(ctx, tx, msg)
	}
}

// Somebody has put a NULL into the errors of a dead letter. People see it, and its
// message is handled again as any other.
func TestReplay_ErrorsByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var mended atomic.Bool
	in := b.inbox(t, dies(&mended), inbox.Config{Ordering: inbox.Strict})
	outcome, err := in.Process(t.Context(), keyed("evt_1", "k"))
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	b.exec(t, `UPDATE dead_letters SET errors = '{NULL}'`)
	mended.Store(true)
	people := inbox.NewStore(b.Schema)

	records, err := people.List(t.Context(), b.Pool, inbox.Filter{})
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.Equal(t, []string{""}, records[0].Errors)
	require.NoError(t, people.Replay(t.Context(), b.Pool, b.letters(t)[0].ID, "ann"))
	works(t, in)
	require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 }, deadline, tick)
	require.Equal(t, dlq.Resolved, b.letters(t)[0].State)
}

// Somebody has changed more than rows: a column of the dead letters may be NULL now,
// and is. What waits for such a letter is left alone; it is no outage.
func TestWork_LetterThatCannotBeScanned(t *testing.T) {
	t.Parallel()

	b := setup(t)
	log := &lines{}
	var mended atomic.Bool
	in := b.inbox(t, dies(&mended), inbox.Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	_, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	mended.Store(true)
	require.NoError(t, inbox.NewStore(b.Schema).Replay(t.Context(), b.Pool, b.letters(t)[0].ID, "ann"))
	b.exec(t, `ALTER TABLE dead_letters ALTER COLUMN count DROP NOT NULL`)
	b.exec(t, `UPDATE dead_letters SET count = NULL`)

	works(t, in)

	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM inbox_messages WHERE lease_owner IS NULL AND cardinality(errors) > 0
			AND ready_at > clock_timestamp() + interval '5 minutes'`) == 1
	}, deadline, tick, "it is not looked at all the time")
	require.Equal(t, 1, log.count("is left alone: a person must decide"))
	records, err := inbox.NewStore(b.Schema).List(t.Context(), b.Pool, inbox.Filter{})
	require.NoError(t, err)
	require.Contains(t, strings.Join(records[0].Errors, " "), "the message cannot be read")
}

// Somebody has set how many attempts have failed to a number that leaves no room for
// one more, or is none. What fails is dead, or is tried as often as any other: it is
// not tried for ever because its failure cannot be written.
func TestWork_AttemptsByHand(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		damage string
		want   int // attempts at least that the dead letter tells
	}{
		"Max":      {`attempts = 2147483647, first_failed_at = now()`, 1 << 30},
		"Negative": {`attempts = -5`, 3},
		"Min":      {`attempts = -2147483648, first_failed_at = now()`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inbox(t, func(context.Context, pgx.Tx, *handler.Message) error { return errors.New("no") },
				inbox.Config{Ordering: inbox.Strict, Retry: inbox.Retry{Attempts: 3}})
			_, err := in.Store(t.Context(), keyed("evt_1", "k"))
			require.NoError(t, err)
			b.exec(t, `UPDATE inbox_messages SET `+tt.damage)

			works(t, in)

			require.Eventually(t, func() bool { return len(b.letters(t)) == 1 }, deadline, tick)
			letter := b.letters(t)[0]
			require.Equal(t, dlq.Exhausted, letter.Reason)
			require.GreaterOrEqual(t, letter.Attempts, tt.want)
			require.Less(t, letter.Attempts, tt.want+10)
		})
	}
}

// What is put off with such a number of attempts is put off, and tried again.
func TestWork_PutOffWithAttemptsByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var mended atomic.Bool
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if !mended.Load() {
			return errors.New("no")
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{Retry: inbox.Retry{Attempts: math.MaxInt, Delay: time.Millisecond, MaxDelay: 20 * time.Millisecond}})
	_, err := in.Store(t.Context(), message("evt_1"))
	require.NoError(t, err)
	b.exec(t, `UPDATE inbox_messages SET attempts = 2147483647, first_failed_at = now()`)

	works(t, in)

	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM inbox_messages WHERE cardinality(errors) > 0`) == 1
	}, deadline, tick, "its failure is written")
	mended.Store(true)
	require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 }, deadline, tick)
}

// Somebody has set the sums of a dead letter to all that a column can hold. A replay
// that fails opens it again.
func TestReplay_SumsByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, dies(new(atomic.Bool)), inbox.Config{Ordering: inbox.Strict})
	_, err := in.Process(t.Context(), keyed("evt_1", "k"))
	require.NoError(t, err)
	b.exec(t, `UPDATE dead_letters SET attempts = 2147483647, count = 9223372036854775807`)

	outcome, err := in.Replay(t.Context(), b.letters(t)[0].ID)
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	require.Equal(t, dlq.Open, b.letters(t)[0].State)
}

// Somebody has given a message a place that none has. What comes behind it in its key
// is stored, and replayed, in its order, and the key has room for it.
func TestStore_PlaceByHand(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct{ first, second string }{
		"Max":       {`1`, `9223372036854775807`},
		"FirstMax":  {`9223372036854775807`, `2`},
		"Min":       {`1`, `-9223372036854775808`},
		"FirstMin":  {`-9223372036854775808`, `2`},
		"BothApart": {`-9223372036854775808`, `9223372036854775807`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			var mended atomic.Bool
			_, err := b.inbox(t, dies(&mended), inbox.Config{}).Process(t.Context(), keyed("replayed", "k"))
			require.NoError(t, err)
			mended.Store(true)
			h := b.sequence(t, func(*handler.Message) error { return nil })
			in := b.inbox(t, h.handle, inbox.Config{Ordering: inbox.Strict, MaxStoredPerKey: 20})
			for _, id := range []string{"first", "second"} {
				_, err := in.Store(t.Context(), keyed(id, "k"))
				require.NoError(t, err)
			}
			b.exec(t, `UPDATE inbox_messages SET place = `+tt.first+` WHERE message_text = 'first'`)
			b.exec(t, `UPDATE inbox_messages SET place = `+tt.second+` WHERE message_text = 'second'`)

			outcomes, err := in.StoreAll(t.Context(), []*handler.Message{keyed("third", "k"), keyed("fourth", "k")})
			require.NoError(t, err)
			require.Equal(t, []handler.Outcome{handler.Stored, handler.Stored}, outcomes)
			b.exec(t, `UPDATE inbox_messages SET place = `+tt.second+` WHERE message_text = 'fourth'`)
			outcome, err := in.Process(t.Context(), keyed("fifth", "k"))
			require.NoError(t, err)
			require.Equal(t, handler.Stored, outcome)
			b.exec(t, `UPDATE inbox_messages SET place = `+tt.second+` WHERE message_text = 'fifth'`)
			require.NoError(t, inbox.NewStore(b.Schema).Replay(t.Context(), b.Pool, b.letters(t)[0].ID, "ann"))

			works(t, in)
			require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
			require.Equal(t, []string{"first", "second", "third", "fourth", "fifth", "replayed"}, h.seen(t))
			require.Len(t, b.letters(t), 1)
		})
	}
}

// Somebody has set back by four hundred years when a message was stored, and when it
// failed first. It is old then, and no message of tomorrow: what nobody has a handler
// for is dead, and so is what fails.
func TestWork_AgesByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	unknown := b.inbox(t, handler.Mux(map[string]handler.Func{}, nil), inbox.Config{})
	failing := b.inboxOn(t, b.Pool, "billing", func(context.Context, pgx.Tx, *handler.Message) error { return errors.New("no") },
		inbox.Config{Retry: inbox.Retry{Attempts: 1000}})
	for _, in := range []*inbox.Inbox{unknown, failing} {
		_, err := in.Store(t.Context(), message("evt_1"))
		require.NoError(t, err)
	}
	b.exec(t, `UPDATE inbox_messages SET stored_at = '1600-01-01', first_failed_at = '1600-01-01', attempts = 1`)

	works(t, unknown)
	works(t, failing)

	require.Eventually(t, func() bool { return len(b.letters(t)) == 2 }, deadline, tick)
	for _, l := range b.letters(t) {
		require.Equal(t, map[string]dlq.Reason{"shipping": dlq.UnknownType, "billing": dlq.Exhausted}[l.Consumer], l.Reason)
	}
	require.Zero(t, b.inboxRows(t))
}

// Somebody has made a message ready, or stored, before there were databases, or since
// ever. It is very old then, and no reason to call the oldest of all new.
func TestStatus_AgesByHand(t *testing.T) {
	t.Parallel()

	const day, oldest = 24 * time.Hour, 9e9 * time.Second
	b := setup(t)
	b.exec(t, `INSERT INTO inbox_messages (consumer_id, message_id, ready_at, stored_at)
		SELECT 7, message_id(id), now() - interval '1 day', now() - interval '1 day' FROM unnest('{odd,other}'::text[]) AS id`)
	for _, tt := range []struct {
		ready, stored         string
		wantReady, wantStored time.Duration
	}{
		{`now()`, `now()`, day, day},
		{`'0001-01-01'`, `'0001-01-01'`, oldest, oldest},
		{`'4713-01-01 BC'`, `'4713-01-01 BC'`, oldest, oldest},
		{`'1600-01-01'`, `'1600-01-01'`, oldest, oldest},
		{`'-infinity'`, `'-infinity'`, oldest, oldest},
		{`'infinity'`, `'infinity'`, day, day},
		{`'20000-01-01'`, `'20000-01-01'`, day, day},
	} {
		b.exec(t, `UPDATE inbox_messages SET ready_at = `+tt.ready+`, stored_at = `+tt.stored+` WHERE message_id = message_id('odd')`)
		st, err := inbox.NewStore(b.Schema).Status(t.Context(), b.Pool)
		require.NoError(t, err)
		require.InDelta(t, tt.wantReady, st.Consumers[0].OldestReady, float64(time.Minute), tt.ready)
		require.InDelta(t, tt.wantStored, st.Consumers[0].Oldest, float64(time.Minute), tt.stored)
	}

	b.exec(t, `UPDATE inbox_messages SET ready_at = 'infinity', stored_at = 'infinity'`)
	st, err := inbox.NewStore(b.Schema).Status(t.Context(), b.Pool)
	require.NoError(t, err)
	require.Zero(t, st.Consumers[0].OldestReady)
	require.Zero(t, st.Consumers[0].Oldest)
}

// Somebody has taken the time from messages, to stop them, or has inserted one without
// it. The list shows what waits for nothing, and run-now has it handled; what waits
// behind others of its key does so still.
func TestRunNow_TimeTakenByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{Ordering: inbox.Strict})
	for _, msg := range []*handler.Message{message("stopped"), keyed("head", "k"), keyed("behind", "k")} {
		_, err := in.Store(t.Context(), msg)
		require.NoError(t, err)
	}
	b.exec(t, `UPDATE inbox_messages SET ready_at = NULL, lease_owner = CASE message_text WHEN 'stopped' THEN gen_random_uuid() END`) // of a worker that is gone
	b.exec(t, `INSERT INTO inbox_messages (consumer_id, message_id, message_text) SELECT consumer_id, message_id('inserted'), 'inserted' FROM inbox_messages LIMIT 1`)
	store := inbox.NewStore(b.Schema)

	records, err := store.List(t.Context(), b.Pool, inbox.Filter{State: inbox.StateBehind})
	require.NoError(t, err)
	damage := map[string]string{}
	for _, r := range records {
		damage[r.Message.ID] = strings.Join(r.Damage, "; ")
	}
	const says = "it waits for no time, and behind no other"
	require.Equal(t, map[string]string{"stopped": says, "inserted": says, "head": "", "behind": ""}, damage)

	results, err := store.RunNow(t.Context(), b.Pool, "shipping", "behind", "stopped", "inserted", "head")
	require.NoError(t, err)
	require.False(t, results[0].Changed)
	require.Equal(t, "head", results[0].First.Message.ID)
	for _, r := range results[1:] {
		require.True(t, r.Changed, r.ID)
		require.Equal(t, inbox.StateReady, r.State)
	}
	works(t, in)
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	for _, id := range []string{"stopped", "inserted", "head", "behind"} {
		require.Equal(t, 1, b.effects(t, id), id)
	}
}

// Somebody has deleted the payload of a dead letter that is being replayed, and noted
// that with a time that is none. What is left of its message is not handled.
func TestWork_RedactedByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var mended atomic.Bool
	in := b.inbox(t, dies(&mended), inbox.Config{Ordering: inbox.Strict})
	_, err := in.Process(t.Context(), keyed("evt_1", "k"))
	require.NoError(t, err)
	mended.Store(true)
	people, letter := inbox.NewStore(b.Schema), b.letters(t)[0].ID
	require.NoError(t, people.Replay(t.Context(), b.Pool, letter, "ann"))
	b.exec(t, `UPDATE dead_letters SET payload = NULL, redacted_at = 'infinity'`)

	works(t, in)
	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM inbox_messages WHERE lease_owner IS NULL AND cardinality(errors) > 0`) == 1
	}, deadline, tick)
	require.Zero(t, b.effects(t, "evt_1"))
	b.exec(t, `DELETE FROM inbox_messages`)
	require.ErrorIs(t, people.Replay(t.Context(), b.Pool, letter, "ann"), inbox.ErrRedacted)
}
