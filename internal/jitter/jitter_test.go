package jitter_test

import (
	"math"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/jitter"
)

func TestNew_DrawsAreFullJitter(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name          string
		base, ceiling time.Duration
	}{
		{name: "Quick", base: 50 * time.Millisecond, ceiling: time.Second},
		{name: "Stored", base: time.Second, ceiling: 30 * time.Second},
		{name: "CeilingIsNoPowerOfBase", base: 3, ceiling: 100},
		{name: "BaseAboveCeiling", base: time.Minute, ceiling: time.Second},
		{name: "BaseIsCeiling", base: time.Second, ceiling: time.Second},
		{name: "Zero"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			const rounds, draws = 200, 20
			for range rounds {
				b := jitter.New(tt.base, tt.ceiling)
				most := min(tt.base, tt.ceiling)
				for n := range draws {
					d := b.NextBackOff()
					require.NotEqual(t, backoff.Stop, d, "draw %d", n)
					require.GreaterOrEqual(t, d, time.Duration(0), "draw %d", n)
					require.LessOrEqual(t, d, most, "draw %d", n)
					most = min(2*most, tt.ceiling)
				}
			}
		})
	}
}

// A mean of half the bound tells full jitter from a schedule with a little
// noise: the mean of 20,000 even draws is within 2 % of it, or the odds are
// one in many millions.
func TestNew_MeanIsHalf(t *testing.T) {
	t.Parallel()

	const draws = 20_000
	b := jitter.New(time.Second, time.Second)
	var sum time.Duration
	lowest, highest := time.Second, time.Duration(0)
	for range draws {
		d := b.NextBackOff()
		sum += d
		lowest, highest = min(lowest, d), max(highest, d)
	}

	require.InEpsilon(t, 500*time.Millisecond, sum/draws, 0.02)
	require.Less(t, lowest, 10*time.Millisecond)
	require.Greater(t, highest, 990*time.Millisecond)
}

// Case: after 15 minutes the library's default gives up, and what waited for a
// broker stops waiting without a word.
func TestNew_NeverStops(t *testing.T) {
	t.Parallel()

	b := jitter.New(time.Second, time.Minute)
	b.Clock = clock{time.Now().Add(24 * time.Hour)}

	require.NotEqual(t, backoff.Stop, b.NextBackOff())
}

func TestNew_ResetStartsAnew(t *testing.T) {
	t.Parallel()

	b := jitter.New(time.Millisecond, time.Hour)
	for range 30 {
		b.NextBackOff()
	}
	b.Reset()

	require.LessOrEqual(t, b.NextBackOff(), time.Millisecond)
}

// How many attempts failed stands in a table, and somebody may write there what is
// no number of attempts: a delay comes of it, and no panic of all that waits with it.
func TestDraw_AnyNumber(t *testing.T) {
	t.Parallel()

	tests := []struct {
		n    int
		most time.Duration
	}{
		{n: math.MinInt, most: time.Second},
		{n: math.MinInt32, most: time.Second},
		{n: -1, most: time.Second},
		{n: 0, most: time.Second},
		{n: 1, most: time.Second},
		{n: 3, most: 4 * time.Second},
		{n: math.MaxInt32, most: time.Minute},
		{n: math.MaxInt, most: time.Minute},
	}
	for _, tt := range tests {
		for range 200 {
			d := jitter.Draw(time.Second, time.Minute, tt.n)
			require.GreaterOrEqual(t, d, time.Duration(0), "draw %d", tt.n)
			require.LessOrEqual(t, d, tt.most, "draw %d", tt.n)
		}
	}
}

type clock struct{ now time.Time }

func (c clock) Now() time.Time { return c.now }
