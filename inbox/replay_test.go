package inbox_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// refusing is a handler that refuses everything until it is mended.
type refusing struct{ mended atomic.Bool }

func (r *refusing) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	if err := effect(ctx, tx, msg); err != nil {
		return err
	}
	if !r.mended.Load() {
		return handler.Permanent(errors.New("unknown product"))
	}
	return nil
}

func TestReplay(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var r refusing
	in := b.inbox(t, r.handle, inbox.Config{})
	_, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	id := b.letters(t)[0].ID

	outcome, err := in.Replay(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome, "it fails again")
	letters := b.letters(t)
	require.Len(t, letters, 1, "the same dead letter")
	require.Equal(t, dlq.Open, letters[0].State)
	require.Equal(t, 2, letters[0].Attempts)
	require.Zero(t, b.effects(t, "evt_1"))

	r.mended.Store(true)
	outcome, err = in.Replay(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.Equal(t, dlq.Resolved, b.letters(t)[0].State)
	require.Equal(t, 1, b.effects(t, "evt_1"))

	_, err = in.Replay(t.Context(), id)
	require.ErrorIs(t, err, inbox.ErrNoDeadLetter)
	outcome, err = in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	require.Equal(t, handler.Duplicate, outcome, "a late redelivery")
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// Two operators press replay at once: one effect.
func TestReplay_Twice(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var r refusing
	one := b.inbox(t, r.handle, inbox.Config{})
	two := b.inbox(t, r.handle, inbox.Config{})
	_, err := one.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	id := b.letters(t)[0].ID
	r.mended.Store(true)

	outcomes := make(chan handler.Outcome, 20)
	var wg sync.WaitGroup
	for i := range 20 {
		in := one
		if i%2 == 1 {
			in = two
		}
		wg.Go(func() {
			outcome, err := in.Replay(t.Context(), id)
			if errors.Is(err, inbox.ErrNoDeadLetter) { // resolved before it looked
				outcome, err = handler.Duplicate, nil
			}
			require.NoError(t, err)
			outcomes <- outcome
		})
	}
	wg.Wait()
	close(outcomes)
	counts := map[handler.Outcome]int{}
	for outcome := range outcomes {
		counts[outcome]++
	}
	require.Equal(t, map[handler.Outcome]int{handler.Processed: 1, handler.Duplicate: 19}, counts)
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// Replaying a mismatch is a person's decision to run the second payload too.
func TestReplay_Mismatch(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{})
	_, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	other := message("evt_1")
	other.Payload = []byte(`{"id":2}`)
	_, err = in.Process(t.Context(), other)
	require.NoError(t, err)
	id := b.letters(t)[0].ID

	outcome, err := in.Replay(t.Context(), id)

	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.Equal(t, 2, b.effects(t, "evt_1"))
	require.Equal(t, dlq.Resolved, b.letters(t)[0].State)
	_, err = in.Replay(t.Context(), id)
	require.ErrorIs(t, err, inbox.ErrNoDeadLetter)
}

// A message without a usable id is replayed under the id of its dead letter.
func TestReplay_BadID(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{})
	msg := message("")
	msg.Origin.Topic = "payments"
	_, err := in.Process(t.Context(), msg)
	require.NoError(t, err)

	outcome, err := in.Replay(t.Context(), b.letters(t)[0].ID)
	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)

	outcome, err = in.Process(t.Context(), msg)
	require.NoError(t, err)
	require.Equal(t, handler.Duplicate, outcome)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM effects`))
}

func TestReplay_Refused(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var r refusing
	in := b.inbox(t, r.handle, inbox.Config{})
	_, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	id := b.letters(t)[0].ID

	t.Run("NoSuchID", func(t *testing.T) { //nolint:paralleltest // shares the dead letter
		_, err := in.Replay(t.Context(), id+1000)
		require.ErrorIs(t, err, inbox.ErrNoDeadLetter)
	})
	t.Run("AnotherConsumers", func(t *testing.T) { //nolint:paralleltest // shares the dead letter
		_, err := b.inboxOn(t, b.Pool, "invoicing", effect, inbox.Config{}).Replay(t.Context(), id)
		require.ErrorIs(t, err, inbox.ErrNoDeadLetter)
		require.ErrorContains(t, err, `"shipping"`)
	})
	t.Run("Discarded", func(t *testing.T) { //nolint:paralleltest // shares the dead letter
		b.exec(t, `UPDATE `+pgx.Identifier{b.Schema, "dead_letters"}.Sanitize()+` SET state = 'discarded' WHERE id = $1`, id)
		_, err := in.Replay(t.Context(), id)
		require.ErrorIs(t, err, inbox.ErrNoDeadLetter)
		require.ErrorContains(t, err, "discarded")
	})
}

// A redelivery of a dead message, a duplicate, is in flight when somebody
// replays it: the replay waits for it and then runs all the same.
func TestReplay_WhileADuplicateIsInFlight(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var r refusing
	inFlight, release := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	in := b.inbox(t, r.handle, inbox.Config{
		ID: func(msg *handler.Message) (string, error) { return msg.ID, nil },
		Observer: inbox.ObserverFunc(func(_ context.Context, e inbox.Event) {
			if e.Kind == inbox.Settled && e.Outcome == handler.Duplicate && !once.Swap(true) {
				close(inFlight)
				<-release
			}
		}),
	})
	_, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	id := b.letters(t)[0].ID
	r.mended.Store(true)

	var wg sync.WaitGroup
	wg.Go(func() {
		outcome, err := in.Process(t.Context(), message("evt_1"))
		require.NoError(t, err)
		require.Equal(t, handler.Duplicate, outcome)
	})
	<-inFlight
	wg.Go(func() {
		outcome, err := in.Replay(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, handler.Processed, outcome)
	})
	close(release)
	wg.Wait()
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// A database that accepts and never answers kept a replay waiting for as long
// as TCP does; a connection that broke was no outage, since its error has no
// code.
func TestReplay_DuringOutage(t *testing.T) {
	t.Parallel()

	for _, kind := range []string{"Silent", "Cut"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			proxy, pool := b.through(t, "")
			var r refusing
			in := b.inboxOn(t, pool, "shipping", r.handle, inbox.Config{StatementTimeout: 2 * time.Second})
			_, err := in.Process(t.Context(), message("evt_1"))
			require.NoError(t, err)
			id := b.letters(t)[0].ID

			proxy.BlackHole(true)
			proxy.Pause()
			if kind == "Cut" {
				proxy.Refuse(true)
				proxy.Resume()
				proxy.Cut()
			}
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			_, err = in.Replay(ctx, id)
			require.ErrorIs(t, err, inbox.ErrOutage)

			proxy.Refuse(false)
			proxy.BlackHole(false)
			proxy.Cut()
			proxy.Resume()
			r.mended.Store(true)
			require.Eventually(t, func() bool {
				outcome, err := in.Replay(t.Context(), id)
				return err == nil && outcome == handler.Processed
			}, deadline, tick)
		})
	}
}
