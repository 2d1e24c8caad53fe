package inbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/memory"
)

// requireWholeEngine requires that each statement of the engine works on pool.
func (b *testBundle) requireWholeEngine(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var mended atomic.Bool
	in := b.inboxOn(t, pool, "shipping", func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if msg.Type == "broken" && !mended.Load() {
			return handler.Permanent(errors.New("broken"))
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{Prepare: func(context.Context, *handler.Message) error { return nil }})

	process := func(want handler.Outcome, msg *handler.Message) {
		t.Helper()
		outcome, err := in.Process(t.Context(), msg)
		require.NoError(t, err)
		require.Equal(t, want, outcome)
	}
	process(handler.Processed, message("evt_1"))
	process(handler.Duplicate, message("evt_1"))
	process(handler.Mismatch, &handler.Message{ID: "evt_1", Payload: []byte("another")})
	process(handler.Dead, &handler.Message{Payload: []byte("no id")})
	process(handler.Duplicate, &handler.Message{Payload: []byte("no id")}) // counts it
	process(handler.Dead, &handler.Message{ID: "evt_2", Type: "broken"})

	dead := b.letters(t)
	require.Equal(t, []dlq.Reason{dlq.Mismatch, dlq.BadID, dlq.Permanent}, []dlq.Reason{dead[0].Reason, dead[1].Reason, dead[2].Reason})
	require.EqualValues(t, 2, dead[1].Count)
	for _, want := range []handler.Outcome{handler.Dead, handler.Processed} {
		outcome, err := in.Replay(t.Context(), dead[2].ID)
		require.NoError(t, err)
		require.Equal(t, want, outcome)
		mended.Store(true)
	}

	b.remember(t, "shipping", "purged-", 10, "20 days")
	b.due(t)
	inbox.PurgeEvery(in, 6*time.Hour, tick)
	queue := memory.NewQueue("payments")
	require.NoError(t, errors.Join(queue.Publish(t.Context(), []*handler.Message{message("evt_3")})...))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx, memory.NewSource(queue)) }()
	require.NoError(t, queue.Wait(t.Context()))
	require.Eventually(t, func() bool { return b.count(t, `SELECT count(*) FROM processed WHERE message LIKE 'purged-%'`) == 0 }, deadline, tick)
	process(handler.Dead, old("purged-1", 21*day))
	cancel()
	require.NoError(t, <-done)
	require.Equal(t, 1, b.effects(t, "evt_3"))
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM dead_letters WHERE reason = 'too_old'`))
}
