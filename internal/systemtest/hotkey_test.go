package systemtest_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// Case K14: one key got most of the messages and another one failed; keys that
// had nothing to do with either waited for them (watermill#547;
// parallel-consumer#266). All are in one partition, the busy keys first. The
// hot key's first message runs until the cold keys are done, and the failing
// key's first message fails until then: the cold ones wait for neither.
func TestHotKey_ColdKeysDoNotWait(t *testing.T) {
	t.Parallel()

	const hot, failing, cold = 200, 50, 300
	b := setup(t, onKafka, place{partitions: 1})
	var sent []*handler.Message
	queue := func(n int, key func(i int) string) {
		for i := range n {
			msg := messages(len(sent), 1)[0]
			msg.Key, msg.Version = []byte(key(i)), int64(len(sent))
			sent = append(sent, msg)
		}
	}
	queue(hot, func(int) string { return "hot" })
	queue(failing, func(int) string { return "failing" })
	queue(cold, func(i int) string { return fmt.Sprint("cold ", i) })
	send(t, b.broker, sent...)

	var failures atomic.Int64
	coldDone := make(chan struct{})
	letGo := sync.OnceFunc(func() { close(coldDone) })
	// Two workers: the hot key has one of them all the time.
	r := b.start(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if err := effect(ctx, tx, msg); err != nil {
			return err
		}
		switch string(msg.Key) {
		case "hot":
			select {
			case <-coldDone:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		case "failing":
			select {
			case <-coldDone:
			default:
				failures.Add(1)
				return errNowAndThen
			}
		}
		return nil
	}, inbox.Config{Workers: 2, QuickAttempts: 1_000_000, QuickDelay: 20 * time.Millisecond, QuickMaxDelay: 20 * time.Millisecond, HandlerTimeout: 5 * patience})
	t.Cleanup(letGo)
	b.awaitEffects(t, cold)
	effects := b.effects(t)
	require.Len(t, effects, cold)
	for _, msg := range sent[hot+failing:] {
		require.Contains(t, effects, msg.ID, "a cold one waits")
	}
	require.Greater(t, failures.Load(), int64(1), "it failed again and again meanwhile")
	require.Equal(t, len(sent), b.broker.left(t), "the busy keys are before them")

	letGo()
	r.awaitSettled(t, len(sent))
	r.finish(t)
	b.requireOneEffectEach(t, ids(sent))
	b.requireOrder(t, sent)
	require.EqualValues(t, failures.Load(), r.in.Stats().FailedAttempts)
	require.Equal(t, passed{delivered: len(sent), settled: len(sent)}, r.passed(), "each came once")
	require.Empty(t, b.letters(t))
	require.Zero(t, b.broker.left(t))
}
