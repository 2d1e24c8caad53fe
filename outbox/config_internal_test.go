package outbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRelayConfig_Defaults(t *testing.T) {
	t.Parallel()

	cfg := RelayConfig{}.withDefaults()

	require.Regexp(t, `.+/[0-9]+$`, cfg.Name)
	require.NotNil(t, cfg.Logger)
	cfg.Name, cfg.Logger = "", nil
	require.Equal(t, RelayConfig{
		Schema: "semel", Batch: 100, Window: 1000, Lease: time.Minute, AttemptTimeout: 5 * time.Second,
		RetryDelay: time.Second, RetryMaxDelay: 30 * time.Second, MaxAge: 24 * time.Hour, Poll: time.Second,
		MaxBlocked: 1000, Retention: 7 * 24 * time.Hour, ArchiveRetention: 3650 * 24 * time.Hour, StatementTimeout: 10 * time.Second,
		Quarantine: Hold, Done: Mark,
	}, cfg)
}

// Every relay gets as many leases as any other, give or take one, and together
// they have all of them.
func TestShareOf(t *testing.T) {
	t.Parallel()

	for members := 1; members <= 100; members++ {
		owners := map[int16]int{}
		for rank := range members {
			mine := shareOf(rank, members)
			require.InDelta(t, float64(leases)/float64(members), len(mine), 1)
			for _, lo := range mine {
				owners[lo]++
			}
		}
		require.Len(t, owners, leases)
		for lo, n := range owners {
			require.Equal(t, 1, n, "lease %d", lo)
		}
	}
}

// A lease is over as soon as one of the clocks says so: a machine that was
// suspended shows it only in the wall clock, one whose clock was set back only
// in the monotonic one.
func TestBefore(t *testing.T) {
	t.Parallel()

	now := time.Now()
	require.True(t, before(now, now.Add(time.Minute)))
	require.False(t, before(now, now.Add(-time.Millisecond)))
	require.False(t, before(now, now.Round(0).Add(-time.Millisecond)), "the wall clock alone")
}
