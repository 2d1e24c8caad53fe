package outbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

func TestStore_Retry(t *testing.T) {
	t.Parallel()

	b := setup(t)
	store := b.oneOfEach(t)
	all := []string{eventID(6), eventID(5), eventID(4), eventID(3), eventID(2), eventID(1), eventID(99)}

	changed, err := store.Retry(t.Context(), b.Pool, all...)

	require.NoError(t, err)
	require.Equal(t, []string{eventID(3), eventID(2)}, changed)
	for _, id := range changed {
		r, err := store.Load(t.Context(), b.Pool, id)
		require.NoError(t, err)
		require.Equal(t, outbox.StateWaiting, r.State)
		require.WithinDuration(t, time.Now(), r.NextAttemptAt, 10*time.Minute)
		require.Zero(t, r.FirstFailedAt)
		require.Positive(t, r.Attempts, "those of its whole life")
		require.Zero(t, query[int](t, b, `SELECT lease_attempts FROM semel.outbox WHERE id = $1`, id))
	}

	_, err = store.Retry(t.Context(), b.Pool, eventID(1), "evt_1")
	require.ErrorIs(t, err, outbox.ErrNotFound)
}

func TestStore_Discard(t *testing.T) {
	t.Parallel()

	b := setup(t)
	store := b.oneOfEach(t)

	_, err := store.Discard(t.Context(), b.Pool, eventID(1), "evt_1")
	require.ErrorIs(t, err, outbox.ErrNotFound)
	require.Equal(t, "pending", b.states(t, "1"), "nothing is done if one id is none")

	changed, err := store.Discard(t.Context(), b.Pool, eventID(1), eventID(2), eventID(3), eventID(4), eventID(5), eventID(99))
	require.NoError(t, err)
	require.Equal(t, []string{eventID(1), eventID(2), eventID(3)}, changed)
	require.Equal(t, "published", b.states(t, "4"))
	require.Equal(t, "discarded", b.states(t, "2"))
}

// An event that no broker takes is in quarantine. Once the reason is mended a
// person retries it: it and what it held back go out in order. Another one is
// discarded: what it held back goes on without it.
func TestDecisions_ReachARunningRelay(t *testing.T) {
	t.Parallel()

	b := setup(t)
	store := outbox.NewStore(b.Schema)
	var broken atomic.Bool
	broken.Store(true)
	p := &recorder{answer: func(_ context.Context, msg *handler.Message) error {
		if msg.Version == 1 && (broken.Load() || string(msg.Key) == "2") {
			return handler.Permanent(errors.New("never"))
		}
		return nil
	}}
	b.relay(t, p, quick())
	b.write(t, order("1", 1), order("2", 1), order("1", 2), order("2", 2))
	b.awaitStates(t, "1", "quarantined pending")
	b.awaitStates(t, "2", "quarantined pending")

	held, err := store.List(t.Context(), b.Pool, outbox.Filter{State: outbox.StateQuarantined})
	require.NoError(t, err)
	require.Len(t, held, 2)
	broken.Store(false)
	began := time.Now()
	changed, err := store.Retry(t.Context(), b.Pool, held[0].ID)
	require.NoError(t, err)
	require.Len(t, changed, 1)
	changed, err = store.Discard(t.Context(), b.Pool, held[1].ID)
	require.NoError(t, err)
	require.Len(t, changed, 1)

	b.awaitStates(t, "1", "published published")
	b.awaitStates(t, "2", "discarded published")
	t.Logf("after %s", time.Since(began))
	var versions []int64
	for _, m := range p.messages() {
		if string(m.Key) == "1" {
			versions = append(versions, m.Version)
		}
	}
	require.Equal(t, []int64{1, 2}, versions)
	changed, err = store.Discard(t.Context(), b.Pool, held[0].ID)
	require.NoError(t, err)
	require.Empty(t, changed, "the relay was faster")
}

// Who may look may not decide.
func TestDecisions_Rights(t *testing.T) {
	t.Parallel()

	b := setup(t)
	store := b.oneOfEach(t)
	operator, relay := b.asPart(t, schema.Operator), b.asPart(t, schema.Relay)

	_, err := store.Status(t.Context(), operator)
	require.NoError(t, err)
	_, err = store.List(t.Context(), operator, outbox.Filter{})
	require.NoError(t, err)
	_, err = store.Load(t.Context(), operator, eventID(1))
	require.NoError(t, err)
	_, err = store.Retry(t.Context(), operator, eventID(3))
	require.ErrorContains(t, err, "permission denied")
	_, err = store.Discard(t.Context(), operator, eventID(3))
	require.ErrorContains(t, err, "permission denied")
	_, err = store.Purge(t.Context(), operator, 0, outbox.PurgeConfig{})
	require.ErrorContains(t, err, "permission denied")

	for _, do := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := store.Status(ctx, relay); return err },
		func(ctx context.Context) error { _, err := store.Retry(ctx, relay, eventID(3)); return err },
		func(ctx context.Context) error { _, err := store.Discard(ctx, relay, eventID(3)); return err },
		func(ctx context.Context) error {
			_, err := store.Purge(ctx, relay, 0, outbox.PurgeConfig{})
			return err
		},
	} {
		require.NoError(t, do(t.Context()))
	}
}
