package systemtest_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// Case K6: SIGTERM with 1000 messages in flight. A shutdown that let go at once
// had the next process handle finished work again (watermill#446;
// parallel-consumer#826).
func TestDrain_FinishedWorkDoesNotComeAgain(t *testing.T) {
	eachBroker(t, func(t *testing.T, kind string) {
		const total, passing, inFlight = 1500, 200, 1000
		b := setup(t, kind, place{partitions: 3})
		sent := messages(0, total)
		send(t, b.broker, sent...)
		var started atomic.Int32
		release := make(chan struct{})
		recipe := b.broker.recipe()
		recipe.Prefetch = inFlight + passing
		in := b.inbox(t, b.Pool, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
			if started.Add(1) > passing {
				<-release
			}
			return effect(ctx, tx, msg)
		}, inbox.Config{})
		first := b.run(t, in, recipe.source(b.log.logger()))
		await(t, "handlers that run and 1000 in flight", func() bool {
			return first.inFlight() >= inFlight && in.Stats().Running == workers && started.Load() == passing+workers
		})

		first.stop()
		await(t, "what was not started to be given back", func() bool { return in.Stats().Waiting == 0 })
		close(release)
		require.NoError(t, first.ended(t))
		finished := b.effects(t)
		require.Len(t, finished, passing+workers, "what ran could finish, and nothing else was started")
		require.Equal(t, total-len(finished), b.broker.left(t))

		second := b.start(t, effect, inbox.Config{})
		second.awaitSettled(t, total-len(finished))
		second.finish(t)

		for name := range finished {
			require.Zero(t, second.deliveries(name), "%s was finished and came again", name)
		}
		require.Zero(t, second.in.Stats().Duplicates)
		require.Zero(t, first.in.Stats().FailedAttempts, "shutdown is not a failure")
		b.requireOneEffectEach(t, ids(sent))
		require.Zero(t, b.broker.left(t))
	})
}

// Case K6, with keys: messages that wait behind their key are holes before
// finished ones, and Kafka's one offset cannot leave out a hole. They are handled
// in the drain, or what finished behind them would come again.
func TestDrain_FinishedWorkDoesNotComeAgainWithKeys(t *testing.T) {
	eachBroker(t, func(t *testing.T, kind string) {
		const total, passing = 600, 100
		b := setup(t, kind, place{partitions: 3})
		sent := messages(0, total)
		for i, msg := range sent {
			msg.Key = []byte{'a' + byte(i%20)}
		}
		send(t, b.broker, sent...)
		var started atomic.Int32
		release := make(chan struct{})
		in := b.inbox(t, b.Pool, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
			if started.Add(1) > passing {
				<-release
			}
			return effect(ctx, tx, msg)
		}, inbox.Config{})
		first := b.run(t, in, b.broker.recipe().source(b.log.logger()))
		await(t, "handlers that run", func() bool { return started.Load() == passing+workers })

		first.stop()
		close(release)
		require.NoError(t, first.ended(t))
		finished := b.effects(t)
		require.Less(t, len(finished), total, "the drain did not handle all there was")
		second := b.start(t, effect, inbox.Config{})
		second.awaitSettled(t, total-len(finished))
		second.finish(t)

		for name := range finished {
			require.Zero(t, second.deliveries(name), "%s was finished and came again", name)
		}
		b.requireOneEffectEach(t, ids(sent))
		require.Zero(t, b.broker.left(t))
		b.requireOrder(t, sent)
	})
}

// requireOrder requires that the messages of each key took effect in the order
// in which they were sent. Messages that must not take effect are left out of
// sent.
func (b *testBundle) requireOrder(t *testing.T, sent []*handler.Message) {
	t.Helper()
	want := map[string][]string{}
	for _, msg := range sent {
		if key := string(msg.Key); !slices.Contains(want[key], nameOf(msg)) { // a further copy changes nothing
			want[key] = append(want[key], nameOf(msg))
		}
	}
	rows, err := b.Pool.Query(t.Context(), `SELECT key, name FROM effects ORDER BY seq`)
	require.NoError(t, err)
	got := map[string][]string{}
	var key, name string
	_, err = pgx.ForEachRow(rows, []any{&key, &name}, func() error {
		got[key] = append(got[key], name)
		return nil
	})
	require.NoError(t, err)
	for key := range want {
		require.Equal(t, want[key], got[key], "PROMISE BROKEN: the order of key %q", key)
	}
}
