package inbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/faultproxy"
	"github.com/semel-go/semel/transports/memory"
)

// Case D7: the same for a whole source with several workers, where a cut meets
// several messages at once: a connection breaks every few messages, at a place
// drawn by chance, and now and then the service is stopped and started.
func TestCut_Run(t *testing.T) {
	t.Parallel()

	const total = 100
	types := []string{succeeds, succeeds, succeeds, failsOnce, isHopeless}
	b := setupCuts(t)
	b.conns = 6
	b.open(t, "shipping", inbox.Config{QuickAttempts: 100}) // or bad luck could make a healthy message a dead one
	_, err := b.in.Process(t.Context(), message("evt"))     // the start checks
	require.NoError(t, err)
	queue := memory.NewQueue("payments")
	id := func(i int) string { return fmt.Sprintf("evt_%d", i) }
	for i := range total {
		msg := message(id(i))
		msg.Type = types[i%len(types)]
		for range 1 + i%2 { // every other one comes twice
			require.NoError(t, queue.Publish(t.Context(), []*handler.Message{msg})[0])
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seed, cuts := uint64(time.Now().UnixNano()), 0
	var ended error
	var running sync.WaitGroup
	deploys := make(chan struct{})
	running.Go(func() { cuts = b.cutAtRandom(ctx, seed, deploys) })
	running.Go(func() {
		for ctx.Err() == nil && ended == nil {
			run, stop := context.WithCancel(ctx)
			running.Go(func() {
				defer stop()
				select {
				case <-deploys:
				case <-run.Done():
				}
			})
			ended = b.in.Run(run, memory.NewSource(queue))
			stop()
		}
	})
	patience, giveUp := context.WithTimeout(ctx, 2*time.Minute)
	defer giveUp()
	settled := queue.Wait(patience)
	cancel()
	running.Wait()
	b.proxy.Lift()
	require.NoError(t, settled, "seed %d", seed)
	require.NoError(t, ended, "seed %d", seed)

	require.Greater(t, cuts, 10, "it proves little, seed %d", seed)
	for i := range total {
		want := left{effects: 1}
		if types[i%len(types)] == isHopeless {
			want = left{letters: 1, copies: 1}
		}
		got := b.left(t, id(i))
		got.attempts = 0 // the sum is below
		require.Equal(t, want, got, "%s, seed %d; dead because: %s", id(i), seed, b.whyDead(t, id(i)))
	}
	failing := total / len(types) * 2
	require.GreaterOrEqual(t, b.in.Stats().FailedAttempts, int64(failing))
	require.LessOrEqual(t, b.in.Stats().FailedAttempts, int64(failing+cuts), "a cut costs one attempt at most, seed %d", seed)
	b.requireNothingLeaked(t, fmt.Sprintf("seed %d", seed))
	t.Logf("CUT scenario=Run messages=%d cuts=%d lost=0 doubled=0", total, cuts)
}

// cutAtRandom cuts one connection after the other until ctx ends. Each tenth
// time it asks for a deploy.
func (b *cutBundle) cutAtRandom(ctx context.Context, seed uint64, deploys chan<- struct{}) (cuts int) {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // chance, not secrets
	ways := []cutPoint{
		{side: faultproxy.FromClient, moment: faultproxy.Before},
		{side: faultproxy.FromClient, moment: faultproxy.Amid},
		{side: faultproxy.FromClient, moment: faultproxy.After},
		{side: faultproxy.FromServer, moment: faultproxy.Before},
	}
	for {
		way := ways[random.IntN(len(ways))]
		way.at = 1 + random.IntN(150)
		select {
		case <-b.lie(way).Sprung():
			if cuts++; cuts%10 == 0 {
				select {
				case deploys <- struct{}{}:
				case <-ctx.Done():
				}
			}
		case <-ctx.Done():
			return cuts
		}
	}
}
