package inbox

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFIFO_RandomWalk(t *testing.T) {
	t.Parallel()

	var q fifo
	var want []*task
	for range 10_000 {
		if rand.IntN(5) < 3 && len(want) < 100 {
			want = append(want, &task{})
			q.push(want[len(want)-1])
		} else if len(want) > 0 {
			require.Same(t, want[0], q.pop())
			want = want[1:]
		}
		require.Equal(t, len(want) == 0, q.empty())
	}
	require.LessOrEqual(t, cap(q.tasks), 512, "it uses its memory again")
	held := 0
	for _, kept := range q.tasks[:cap(q.tasks)] {
		if kept != nil {
			held++
		}
	}
	require.Equal(t, len(want), held, "it keeps no task alive that has gone")
}
