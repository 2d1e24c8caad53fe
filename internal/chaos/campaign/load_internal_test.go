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

	l := newLoad("test", false)
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

// Where a person decides there is more: what must be mended, and what fails now
// and then.
func TestLoad_Decided(t *testing.T) {
	t.Parallel()

	l, types := newLoad("test", true), map[string]int{}
	for range 10 {
		l.wave()
	}
	for _, s := range l.all {
		types[s.message.Type]++
	}
	for _, what := range []string{wire.Paid, wire.Doomed, wire.Broken, wire.Flaky} {
		require.Positive(t, types[what], what)
	}
	require.Zero(t, types[wire.Late])
}

// A worker can take all of the crowd at once, and of each key some wait behind it.
func TestLoad_Crowd(t *testing.T) {
	t.Parallel()

	late, paid := map[string]int{}, map[string]int{}
	for _, m := range newLoad("test", true).crowd(wire.Crowd) {
		if m.Type == wire.Late {
			late[string(m.Key)]++
		} else {
			require.Positive(t, late[string(m.Key)], "it is behind")
			paid[string(m.Key)]++
		}
	}
	for _, key := range keys() {
		require.Positive(t, paid[key])
	}
	require.Equal(t, wire.Crowd-keyCount, late[""])
}

func TestLoad_BarrierReachesEveryKey(t *testing.T) {
	t.Parallel()

	reached := map[string]bool{}
	l := newLoad("test", false)
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

	m := newLoad("test", false).make("key-00", wire.Paid)
	one, two := numbered(m, 1), numbered(m, 2)
	require.Equal(t, 1, wire.CopyOf(one))
	require.Equal(t, 2, wire.CopyOf(two))
	require.Equal(t, -1, wire.CopyOf(m))
	require.Equal(t, m.ID, one.ID)
	require.Equal(t, m.Payload, two.Payload)
}
