package systemtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Case Q2: processes were killed again and again with a full prefetch, and
// messages were lost or took effect twice (wolverine#4162).
// Case K6: SIGKILL in mid batch (parallel-consumer#826).
func TestKill_AgainAndAgain(t *testing.T) {
	eachBroker(t, func(t *testing.T, kind string) {
		const total, kills = 2000, 3
		b := setup(t, kind, place{partitions: 3})
		sent := messages(0, total)
		send(t, b.broker, sent...)
		recipe := b.broker.recipe()
		recipe.Session = 1500 * time.Millisecond

		for range kills {
			before := b.count(t)
			c := b.spawn(t, recipe)
			await(t, "the child to be at work", func() bool { return b.count(t) > before+100 })
			c.kill()
			require.Less(t, b.count(t), total-200, "the child was killed in the middle of its work")
		}
		last := b.spawn(t, recipe)
		b.awaitEffects(t, total)
		last.finish(t)
		b.exhaust(t)

		b.requireOneEffectEach(t, ids(sent))
		require.Empty(t, b.letters(t))
	})
}
