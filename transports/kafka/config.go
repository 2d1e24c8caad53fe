package kafka

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Defaults of [SourceConfig].
const (
	defaultDrainTimeout  = 30 * time.Second
	defaultWindowRecords = 10_000
	defaultWindowBytes   = 64 << 20
)

// SourceConfig is what a [Source] needs to know. Group and Topics are
// required.
type SourceConfig struct {
	// Group is the consumer group. All processes of one consumer share it.
	Group string

	// Topics are the topics to consume.
	Topics []string

	// DrainTimeout is how long the deliveries of a revoked partition may take
	// to finish before the partition is let go without them. It must be at
	// most three quarters of the group's rebalance timeout, or the group would
	// give the member up. Defaults to 30 seconds, or to those three quarters if
	// they are less.
	DrainTimeout time.Duration

	// WindowRecords and WindowBytes bound what was fetched and not committed
	// yet, of all partitions that this source has together: each has an equal
	// share. Above either a partition is not fetched; it is again below half of
	// both. WindowRecords is also how much may have been in flight when a
	// process died, so let all processes of a group have the same. Default to
	// 10,000 records and 64 MB.
	WindowRecords int
	WindowBytes   int64

	// Logger defaults to [slog.Default].
	Logger *slog.Logger
}

// validate joins everything that is wrong with c.
func (c SourceConfig) validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Group == "" {
		wrong("SourceConfig.Group is empty: name the consumer group")
	}
	if len(c.Topics) == 0 {
		wrong("SourceConfig.Topics is empty: name at least one topic")
	}
	if i := slices.Index(c.Topics, ""); i >= 0 {
		wrong("SourceConfig.Topics[%d] is empty: every topic needs a name", i)
	}
	if c.DrainTimeout < 0 {
		wrong("SourceConfig.DrainTimeout is %s: it must be 0 (the default) or more", c.DrainTimeout)
	}
	if c.WindowRecords < 0 {
		wrong("SourceConfig.WindowRecords is %d: it must be 0 (the default) or more", c.WindowRecords)
	}
	if c.WindowBytes < 0 {
		wrong("SourceConfig.WindowBytes is %d: it must be 0 (the default) or more", c.WindowBytes)
	}
	return errors.Join(errs...)
}

// withDefaults returns c with its empty fields filled. A revoked partition
// must be given back well before the group gives its member up: the commit and
// the way back into the group need the rest of rebalanceTimeout.
func (c SourceConfig) withDefaults(rebalanceTimeout time.Duration) (SourceConfig, error) {
	longest := rebalanceTimeout / 4 * 3
	if c.DrainTimeout > longest {
		return c, fmt.Errorf("SourceConfig.DrainTimeout is %s: it must be at most %s, three quarters of the rebalance timeout (kgo.RebalanceTimeout)", c.DrainTimeout, longest)
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = min(defaultDrainTimeout, longest)
	}
	if c.WindowRecords == 0 {
		c.WindowRecords = defaultWindowRecords
	}
	if c.WindowBytes == 0 {
		c.WindowBytes = defaultWindowBytes
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}
