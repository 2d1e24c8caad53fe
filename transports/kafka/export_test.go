package kafka

import "time"

// WithDefaults is for the test of the defaults.
func WithDefaults(c SourceConfig, rebalanceTimeout time.Duration) (SourceConfig, error) {
	return c.withDefaults(rebalanceTimeout)
}

// SetDoubt shortens how long a commit without an answer may still arrive. It
// must be called before Run.
func (s *Source) SetDoubt(d time.Duration) { s.doubt = d }
