package campaign

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// What a proof is worth depends on what is sent: copies, poison of both kinds,
// messages without a key, and everything in the order in which it is counted.
func TestLoad_Waves(t *testing.T) {
	t.Parallel()

	l := newLoad("test")
	first := map[string]int{}
	copies, keyless, doomed, undecodable, last := 0, 0, 0, 0, -1
	for range 10 {
		for _, m := range l.wave() {
			if _, ok := first[m.ID]; ok {
				copies++
				continue
			}
			first[m.ID] = len(first)
			if len(m.Key) == 0 {
				keyless++
			}
			var e wire.Effect
			switch {
			case json.Unmarshal(m.Payload, &e) != nil:
				undecodable++
			case m.Type == wire.Doomed:
				doomed++
			default:
				require.Greater(t, e.N, last, "effects of a key must rise in the order sent")
				last = e.N
			}
		}
	}

	require.Len(t, l.all, 10*waveSize)
	require.Len(t, first, 10*waveSize)
	for what, n := range map[string]int{"copies": copies, "keyless": keyless, "doomed": doomed, "undecodable": undecodable} {
		require.Positive(t, n, what)
	}
	poison := 0
	for _, s := range l.all {
		if s.poison {
			poison++
		}
	}
	require.Equal(t, doomed+undecodable, poison)
}

func TestLoad_BarrierReachesEveryKey(t *testing.T) {
	t.Parallel()

	reached := map[string]bool{}
	l := newLoad("test")
	for _, m := range l.barrier() {
		reached[string(m.Key)] = true
	}
	require.Len(t, reached, len(keys()))
	for _, s := range l.all {
		require.False(t, s.poison)
	}
}

func TestNumbered_CopiesOfOneMessageDiffer(t *testing.T) {
	t.Parallel()

	m := newLoad("test").make("key-00", false)
	one, two := numbered(m, 1), numbered(m, 2)
	require.Equal(t, 1, wire.CopyOf(one))
	require.Equal(t, 2, wire.CopyOf(two))
	require.Equal(t, -1, wire.CopyOf(m))
	require.Equal(t, m.ID, one.ID)
	require.Equal(t, m.Payload, two.Payload)
}
