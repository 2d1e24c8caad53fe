package doctor_test

import (
	"time"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/doctor"
)

const (
	day = 24 * time.Hour

	// patience is how long a test waits for a state.
	patience = time.Minute
	tick     = 10 * time.Millisecond
)

// shipping is a consumer that has noted all its settings.
func shipping() doctor.Consumer {
	return doctor.Consumer{
		Name: "shipping", Noted: true, Retention: 14 * day,
		Settings: dedup.Settings{
			Workers: 8, PoolSize: 10, Retention: 14 * day, TooOld: "dead_letter",
			RetryMaxAge: day, DeadLetterRetention: -1,
		},
	}
}

// remembering is shipping with another retention.
func remembering(retention time.Duration) []doctor.Consumer {
	c := shipping()
	c.Retention = retention
	return []doctor.Consumer{c}
}

// levels are those of findings, in their order.
func levels(findings []doctor.Finding) []doctor.Level {
	all := make([]doctor.Level, 0, len(findings))
	for _, f := range findings {
		all = append(all, f.Level)
	}
	return all
}
