package campaign

import (
	"io"
	"time"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// FleetConfig says what to prove of relays.
type FleetConfig struct {
	// Relays is how many processes run at once. Defaults to 16.
	Relays int

	// Events is how many are committed at least. Defaults to 100,000.
	Events int

	// Kills is how often each point must count. Defaults to 10.
	Kills int

	// Points are where. Empty: all of a relay.
	Points []wire.Point

	// Broker is [wire.Kafka], the default, or [wire.RabbitMQ].
	Broker wire.Broker

	// Plant, if set, names a planted bug that the relays are built with.
	Plant string

	// Patience is how long nothing at all may happen while something must.
	// Defaults to 30 s, with a plant to 10 s: there it is what is looked for.
	Patience time.Duration

	// Progress gets a line for each kill.
	Progress io.Writer
}

func (c FleetConfig) withDefaults() FleetConfig {
	if c.Relays == 0 {
		c.Relays = 16
	}
	if c.Events == 0 {
		c.Events = 100_000
	}
	if c.Kills == 0 {
		c.Kills = 10
	}
	if len(c.Points) == 0 {
		c.Points = wire.RelayPoints()
	}
	if c.Broker == "" {
		c.Broker = wire.Kafka
	}
	if c.Patience == 0 {
		c.Patience = 30 * time.Second
		if c.Plant != "" {
			c.Patience = 10 * time.Second
		}
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	return c
}
