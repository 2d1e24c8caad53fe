package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/memory"
)

// day is what ages are told in.
const day = 24 * time.Hour

// old is a message that its broker got so long ago.
func old(id string, age time.Duration) *handler.Message {
	msg := message(id)
	msg.Origin.Time = time.Now().Add(-age)
	return msg
}

// purged says that shipping's records were purged up to so long ago.
func (b *testBundle) purged(t *testing.T, age string) {
	t.Helper()
	b.exec(t, `INSERT INTO consumers (id, name, purged_before) VALUES (consumer_id('shipping'), 'shipping', clock_timestamp() - $1::text::interval)
		ON CONFLICT (id) DO UPDATE SET purged_before = excluded.purged_before`, age)
}

// A message whose record may be purged is not run but shown to a person.
// Everything else is handled as ever.
func TestTooOld(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		msg    *handler.Message
		purged string // "": nothing was
		cfg    inbox.Config
		want   handler.Outcome
	}{
		{name: "BeforeThePurge", msg: old("evt_1", 20*day), purged: "14 days", want: handler.Dead},
		{name: "Before", msg: old("evt_1", 2*day+time.Minute), purged: "2 days", want: handler.Dead},
		{name: "After", msg: old("evt_1", 2*day-time.Hour), purged: "2 days", want: handler.Processed},
		{name: "AfterThePurge", msg: old("evt_1", 13*day), purged: "14 days", want: handler.Processed},
		{name: "NothingWasPurged", msg: old("evt_1", 1000*day), want: handler.Processed},
		{name: "Young", msg: old("evt_1", time.Hour), purged: "14 days", want: handler.Processed},
		{name: "NoTime", msg: message("evt_1"), purged: "14 days", want: handler.Processed},
		{name: "ToBeRun", msg: old("evt_1", 20*day), purged: "14 days", cfg: inbox.Config{TooOld: inbox.TooOldRun}, want: handler.Processed},
		{name: "StillRemembered", msg: old("known", 20*day), purged: "14 days", want: handler.Duplicate},
		{name: "StillRememberedOtherwise", msg: &handler.Message{ID: "known", Origin: handler.Origin{Time: time.Now().Add(-20 * day)}}, purged: "14 days", want: handler.Mismatch},
		{name: "NoUsableID", msg: old("", 20*day), purged: "14 days", want: handler.Dead},
	}
	for _, tt := range tests {
		for _, prepared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/Prepare=%t", tt.name, prepared), func(t *testing.T) {
				t.Parallel()

				b := setup(t)
				cfg := tt.cfg
				var prepares atomic.Int32
				if prepared {
					cfg.Prepare = func(context.Context, *handler.Message) error {
						prepares.Add(1)
						return nil
					}
				}
				in := b.inbox(t, effect, cfg)
				_, err := in.Process(t.Context(), message("known"))
				require.NoError(t, err)
				if tt.purged != "" {
					b.purged(t, tt.purged)
				}
				prepares.Store(0)

				outcome, err := in.Process(t.Context(), tt.msg)
				require.NoError(t, err)
				require.Equal(t, tt.want, outcome)

				ran := 0
				if tt.want == handler.Processed {
					ran = 1
				}
				require.Equal(t, ran, b.count(t, `SELECT count(*) FROM effects WHERE message_id <> 'known'`))
				if prepared {
					require.EqualValues(t, ran, prepares.Load(), "what Prepare does outside may be done already")
				}
				if tt.want != handler.Dead || tt.msg.ID == "" {
					require.Zero(t, in.Stats().TooOld)
					require.Zero(t, b.count(t, `SELECT count(*) FROM dead_letters WHERE reason = 'too_old'`))
					return
				}
				require.EqualValues(t, 1, in.Stats().TooOld)
				require.Zero(t, in.Stats().FailedAttempts)
				letter := b.letters(t)[0]
				require.Equal(t, dlq.TooOld, letter.Reason)
				require.Zero(t, letter.Attempts)
				require.Equal(t, tt.msg.Payload, letter.Message.Payload)
				require.Contains(t, letter.Errors[0], "replay it if it was not")
				events := b.events.kinds(inbox.DeadLettered)
				require.Len(t, events, 1)
				require.Equal(t, "too_old", events[0].Reason)
				require.ErrorIs(t, events[0].Err, inbox.ErrTooOld)

				// A person has found out that it was not handled.
				replayed, err := in.Replay(t.Context(), letter.ID)
				require.NoError(t, err)
				require.Equal(t, handler.Processed, replayed)
				require.Equal(t, 1, b.effects(t, "evt_1"))
				again, err := in.Process(t.Context(), tt.msg)
				require.NoError(t, err)
				require.Equal(t, handler.Duplicate, again)
			})
		}
	}
}

// A purge deletes a message's record at the very moment in which a copy waits
// for it: the copy's claim wins, and the copy must still see how far the purge
// came. In a stricter isolation its snapshot is older than that.
func TestTooOld_PurgedWhileItWaits(t *testing.T) {
	t.Parallel()

	for _, level := range []pgx.TxIsoLevel{"", pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inboxOn(t, b.Pool, "shipping", effect, inbox.Config{TxOptions: pgx.TxOptions{IsoLevel: level}, LockTimeout: deadline})
			msg := old("evt_1", 20*day)
			_, err := in.Process(t.Context(), msg)
			require.NoError(t, err)
			b.exec(t, `UPDATE processed_messages SET processed_at = processed_at - interval '19 days'`)
			purge, err := b.Pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = purge.Rollback(context.WithoutCancel(t.Context())) }()
			_, err = purge.Exec(t.Context(), `DELETE FROM processed_messages`)
			require.NoError(t, err)
			_, err = purge.Exec(t.Context(), `UPDATE consumers SET purged_before = clock_timestamp() - interval '19 days'`)
			require.NoError(t, err)

			outcome := make(chan handler.Outcome, 1)
			go func() {
				o, err := in.Process(t.Context(), msg)
				if err != nil {
					t.Error(err)
				}
				outcome <- o
			}()
			require.Eventually(t, func() bool {
				return b.count(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`, b.Schema) > 0
			}, deadline, tick, "the claim waits")
			require.NoError(t, purge.Commit(t.Context()))

			require.Equal(t, handler.Dead, <-outcome)
			require.Equal(t, 1, b.effects(t, "evt_1"))
			require.Equal(t, dlq.TooOld, b.letters(t)[0].Reason)
		})
	}
}

// Somebody has set the group back to the beginning of a topic. A hundred
// messages are enough to see that: the rest stays in the broker, and a person is
// called. Run goes on only after it was started again, with a decision.
func TestTooOld_ManyInARow(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.purged(t, "14 days")
	log := &lines{}
	in := b.inbox(t, effect, inbox.Config{Workers: 4, Logger: slog.New(slog.NewTextHandler(log, nil))})
	src := &pausing{scripted: newScripted()}
	r := startSource(t, in, src, src.scripted)
	const all = 250
	for n := range all {
		require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(old(fmt.Sprintf("evt_%d", n), 20*day), nil)))
	}

	require.Eventually(t, src.paused.Load, deadline, tick)
	require.Eventually(t, func() bool { return b.count(t, `SELECT count(*) FROM dead_letters`) == 100 }, deadline, tick)
	require.Eventually(t, func() bool { return log.has("level=ERROR", "a person must decide", "TooOldRun") }, deadline, tick)
	require.Eventually(t, func() bool { return len(b.events.kinds(inbox.Paused)) == 1 }, deadline, tick)
	require.ErrorIs(t, b.events.kinds(inbox.Paused)[0].Err, inbox.ErrTooOld)
	require.True(t, in.Stats().Paused)
	require.Zero(t, in.Stats().Outages)

	r.stop()
	require.NoError(t, r.wait(t), "the drain waits for nobody to decide")
	require.False(t, src.paused.Load(), "the source may be run again")
	require.False(t, in.Stats().Paused)
	settled := 0
	for n := range all {
		switch answer := src.answer(fmt.Sprintf("evt_%d", n)); answer {
		case "settled":
			settled++
		default:
			require.Equal(t, inbox.ErrDraining.Error(), answer)
		}
	}
	require.Equal(t, 100, settled)
	require.Equal(t, 100, b.count(t, `SELECT count(*) FROM dead_letters WHERE reason = 'too_old'`))
	require.Zero(t, b.count(t, `SELECT count(*) FROM effects`))
	require.EqualValues(t, 100, in.Stats().TooOld)

	// The person has decided: they were never handled.
	in = b.inbox(t, effect, inbox.Config{TooOld: inbox.TooOldRun})
	again := newScripted()
	r = start(t, in, again)
	for n := range all {
		require.NoError(t, r.sink.Deliver(t.Context(), again.delivery(old(fmt.Sprintf("evt_%d", n), 20*day), nil)))
	}
	require.Eventually(t, func() bool { return in.Stats().Processed == all-100 && in.Stats().Duplicates == 100 }, deadline, tick)
	r.stop()
	require.NoError(t, r.wait(t))
}

// Stragglers among messages that are handled are no streak.
func TestTooOld_NotInARow(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.purged(t, "14 days")
	in := b.inbox(t, effect, inbox.Config{Workers: 1})
	queue := memory.NewQueue("payments")
	var msgs []*handler.Message
	for n := range 160 {
		msgs = append(msgs, old(fmt.Sprintf("old_%d", n), 20*day))
		if n%80 == 79 {
			msgs = append(msgs, message(fmt.Sprintf("young_%d", n)))
		}
	}
	require.NoError(t, errors.Join(queue.Publish(t.Context(), msgs)...))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx, memory.NewSource(queue)) }()
	waiting, stop := context.WithTimeout(t.Context(), 3*deadline)
	defer stop()
	require.NoError(t, queue.Wait(waiting))
	cancel()
	require.NoError(t, <-done)

	require.EqualValues(t, 160, in.Stats().TooOld)
	require.EqualValues(t, 2, in.Stats().Processed)
	require.Empty(t, b.events.kinds(inbox.Paused))
}

// A caller of Process has no source that could be paused: it is told, with each
// message, until one is handled again.
func TestTooOld_ManyThroughProcess(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.purged(t, "14 days")
	in := b.inbox(t, effect, inbox.Config{})
	for n := range 100 {
		outcome, err := in.Process(t.Context(), old(fmt.Sprintf("evt_%d", n), 20*day))
		require.NoError(t, err)
		require.Equal(t, handler.Dead, outcome)
	}
	for range 2 {
		_, err := in.Process(t.Context(), old("evt_100", 20*day))
		require.ErrorIs(t, err, inbox.ErrTooOld)
		require.ErrorContains(t, err, "after 100 in a row")
	}
	require.Len(t, b.letters(t), 100)

	_, err := in.Process(t.Context(), message("young"))
	require.NoError(t, err)
	outcome, err := in.Process(t.Context(), old("evt_100", 20*day))
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
}
