package campaign

import (
	"io"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// Config says what to prove.
type Config struct {
	// Kills is how many kills must count in all, spread evenly over points and
	// brokers, at least one each.
	Kills int

	// Points and Brokers are where. Empty: all points that a broker has, and all
	// brokers but [wire.Calls] and [wire.Archive].
	Points  []wire.Point
	Brokers []wire.Broker

	// Plant, if set, names a planted bug that the children are built with.
	Plant string

	// Parallel is how many groups run at once. Most of a round is waiting.
	// Defaults to 8.
	Parallel int

	// Patience is how long nothing at all may happen while something must.
	// Defaults to 30 s, with a plant to 10 s: there it is what is looked for.
	Patience time.Duration

	// Progress gets a line for each kill.
	Progress io.Writer
}

func (c Config) withDefaults() Config {
	if len(c.Brokers) == 0 {
		c.Brokers = wire.Brokers()
	}
	if c.Parallel == 0 {
		c.Parallel = 8
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

// spec is the plan of one group.
type spec struct {
	broker wire.Broker
	point  wire.Point
	kills  int
	crew   crew
}

// ofInbox reports whether what is killed works the inbox: then a key's order is
// kept past failures, and a person decides about what is dead.
func (s spec) ofInbox() bool { return s.point.OfInbox() }

// workAhead is how many messages of the inbox a worker takes; 0 is the default.
func (s spec) workAhead() int {
	if s.point == wire.Worker500 {
		return wire.Crowd
	}
	return 0
}

// crew is who consumes.
type crew struct {
	size int

	// single lets RabbitMQ deliver to one of several at a time.
	single bool

	// ordered says that each key's order is promised across processes, and so
	// counted. Between competing consumers of one queue it is not.
	ordered bool
}

var (
	alone     = crew{size: 1, ordered: true}
	active    = crew{size: 1, ordered: true, single: true}
	members   = crew{size: 2, ordered: true}               // Kafka: a partition has one owner, and memory: a key
	standby   = crew{size: 2, ordered: true, single: true} // x-single-active-consumer
	competing = crew{size: 2}
)

// crewOf gives about half of the groups a second process.
func crewOf(broker wire.Broker, point wire.Point) crew {
	two := slices.Contains([]wire.Point{
		wire.AfterClaim, wire.BeforeCommit, wire.BeforeAck, wire.MidDrain,
		wire.Stored, wire.Parked, wire.MidReplay, wire.MidRelease,
	}, point)
	switch {
	case broker == wire.RabbitMQ && two:
		return standby
	case two:
		return members
	case broker == wire.RabbitMQ && point.OfInbox():
		return active
	case broker == wire.RabbitMQ && (point == wire.AfterHandler || point == wire.AfterAck):
		return competing
	default:
		return alone
	}
}

// pointsOf returns the points at which a process can be killed that consumes from a
// broker.
func (c Config) pointsOf(b wire.Broker) []wire.Point {
	points := wire.Points()
	switch b {
	case wire.Calls:
		points = wire.CallPoints()
	case wire.Archive:
		points = wire.ArchivePoints()
	}
	if len(c.Points) > 0 {
		points = slices.DeleteFunc(points, func(p wire.Point) bool { return !slices.Contains(c.Points, p) })
	}
	return points
}

// Groups is over how many groups the kills are spread.
func (c Config) Groups() int { return len(c.withDefaults().plan()) }

// plan spreads the kills over the groups.
func (c Config) plan() []spec {
	var specs []spec
	for _, broker := range c.Brokers {
		for _, point := range c.pointsOf(broker) {
			specs = append(specs, spec{broker: broker, point: point, crew: crewOf(broker, point)})
		}
	}
	for i := range specs {
		specs[i].kills = max(c.Kills/len(specs), 1)
		if i < c.Kills%len(specs) && c.Kills > len(specs) {
			specs[i].kills++
		}
	}
	return specs
}
