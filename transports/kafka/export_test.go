package kafka

import "time"

// WithDefaults is for the test of the defaults.
func WithDefaults(c SourceConfig, rebalanceTimeout time.Duration) (SourceConfig, error) {
	return c.withDefaults(rebalanceTimeout)
}
