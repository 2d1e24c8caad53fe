package campaign

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// FleetResult is what was proved of relays.
type FleetResult struct {
	config FleetConfig
	Total  RelayCounts
	Points map[wire.Point]*RelayCounts
	Kills  map[wire.Point]int
	PIDs   []int    // of the relays at the start
	Notes  []string // which events these are, up to a number
	Err    error    // why the proof did not get to its end
}

// Failure says what was lost, reordered or made up, and which points were not
// reached as often as planned. Nil: all is well.
func (r FleetResult) Failure() error {
	errs := []error{r.Err}
	if t := r.Total; t.Lost+t.Reordered+t.Phantom+t.Stray > 0 {
		errs = append(errs, fmt.Errorf("relays on %s: lost %d, reordered %d, phantom %d, repeated without a kill %d", r.config.Broker, t.Lost, t.Reordered, t.Phantom, t.Stray))
	}
	for _, at := range r.config.Points {
		if r.Err == nil && r.Kills[at] < r.config.Kills {
			errs = append(errs, fmt.Errorf("%s of a relay on %s: %d kills of %d", at, r.config.Broker, r.Kills[at], r.config.Kills))
		}
	}
	return errors.Join(errs...)
}

// Write writes a line for each point, one with the processes, and a last one
// that sums up.
func (r FleetResult) Write(w io.Writer) {
	for _, at := range r.config.Points {
		counts := r.Points[at]
		if counts == nil {
			counts = &RelayCounts{}
		}
		fmt.Fprintf(w, "CHAOS point=%s broker=%s relays=%d kills=%d %s\n", at, r.config.Broker, r.config.Relays, r.Kills[at], counts)
	}
	pids := strings.ReplaceAll(strings.Trim(fmt.Sprint(r.PIDs), "[]"), " ", ",")
	fmt.Fprintf(w, "CHAOS broker=%s relays=%d pids=%s\n", r.config.Broker, r.config.Relays, pids)
	kills := 0
	for _, n := range r.Kills {
		kills += n
	}
	fmt.Fprintf(w, "CHAOS broker=%s relays=%d kills=%d %s stray=%d\n", r.config.Broker, r.config.Relays, kills, &r.Total, r.Total.Stray)
}

// String is the counts as they are printed.
func (c *RelayCounts) String() string {
	return fmt.Sprintf("events=%d repeats=%d lost=%d reordered=%d phantom=%d", c.Events, c.Repeats, c.Lost, c.Reordered, c.Phantom)
}
