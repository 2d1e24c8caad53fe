package systemtest_test

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
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/kafka"
)

// Case P8: one topic failed among many, and its messages took all workers, or came
// first in every sweep, so that the others starved (Brighter ADR 0028;
// modulith#1022). A thousand messages of a topic, or of a few keys, fail again and
// again, quickly: those of the others are handled all the same, from their source
// and from the inbox, while the failing ones go on failing. Nothing is given up;
// once they can be, all are handled.
func TestStarve_OneTopicOrKeyAmongMany(t *testing.T) {
	t.Parallel()

	const failing, healthy, stored = 1000, 1000, 200
	tests := []struct {
		name      string
		twoTopics bool // the failing ones are in one of their own
		ordering  inbox.Ordering
	}{
		{name: "Topic", twoTopics: true},
		{name: "Key"},
		{name: "KeyInOrder", ordering: inbox.Strict},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setupDatabase(t)
			good := newTopic(t, place{partitions: 2})
			bad, topics := good, []string{good.name}
			if tt.twoTopics {
				bad = newTopic(t, place{partitions: 2})
				topics = append(topics, bad.name)
			}
			all := messages(0, failing+healthy+stored)
			for i, msg := range all {
				msg.Key = fmt.Appendf(nil, "key %d", i%50)
				if i < failing {
					msg.Key = fmt.Appendf(nil, "failing %d", i%5)
				}
			}
			send(t, bad, all[:failing]...) // they are first

			var mended atomic.Bool
			var failures atomic.Int64
			in := b.inbox(t, b.Pool, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				if err := effect(ctx, tx, msg); err != nil {
					return err
				}
				if msg.ID < all[failing].ID && !mended.Load() {
					failures.Add(1)
					return errors.New("nobody takes this")
				}
				return nil
			}, inbox.Config{
				Workers: 2, Ordering: tt.ordering, MaxInFlight: 100, QuickAttempts: 1,
				Retry: inbox.Retry{Attempts: 1_000_000, Delay: 10 * time.Millisecond, MaxDelay: 100 * time.Millisecond, MaxAge: time.Hour},
			})
			r := b.run(t, in, kafka.NewSource(kafka.SourceConfig{Group: good.group, Topics: topics, Logger: slog.New(slog.DiscardHandler)},
				kgo.SeedBrokers(good.brokers...)))
			await(t, "all that fail are in the inbox", func() bool { return b.waiting(t) == failing })

			for _, msg := range all[failing+healthy:] {
				outcome, err := in.Store(t.Context(), msg)
				require.NoError(t, err)
				require.Equal(t, handler.Stored, outcome)
			}
			before := failures.Load()
			send(t, good, all[failing:failing+healthy]...)
			b.awaitEffects(t, healthy+stored)
			await(t, "the others fail meanwhile", func() bool { return failures.Load() > before })
			b.requireOneEffectEach(t, ids(all[failing:]))
			require.Equal(t, failing, b.waiting(t), "none is given up")

			mended.Store(true)
			await(t, "all are handled", func() bool { return b.waiting(t) == 0 })
			r.finish(t)
			b.requireOneEffectEach(t, ids(all))
			require.Empty(t, b.letters(t))
			require.Zero(t, good.left(t))
			if tt.ordering == inbox.Strict {
				for k := range 5 {
					var of []*handler.Message
					for i := k; i < failing; i += 5 {
						of = append(of, all[i])
					}
					require.Equal(t, ids(of), b.inOrder(t, string(of[0].Key)))
				}
			}
		})
	}
}

// waiting is how many messages are in the inbox.
func (b *testBundle) waiting(t *testing.T) int {
	t.Helper()
	var n int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM inbox_messages`).Scan(&n))
	return n
}

// inOrder is in which order the messages of a key took effect.
func (b *testBundle) inOrder(t *testing.T, key string) []string {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), `SELECT name FROM effects WHERE key = $1 ORDER BY seq`, key)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}
