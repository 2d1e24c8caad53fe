package campaign

import (
	"errors"
	"fmt"
	"io"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// Result is what one group has proved.
type Result struct {
	spec
	Tally
	Kills       int   // that count
	Redelivered int   // copies that were delivered again
	Err         error // why the group did not get to its end

	// Calls that reached the provider, and Effects there, where there is one.
	Calls, Effects int
}

// err says why the group is not well: something was lost, doubled or reordered,
// or the point was not reached as often as planned.
func (r Result) err() error {
	switch {
	case r.Lost+r.Doubled+r.Reordered > 0:
		return errors.Join(fmt.Errorf("%s on %s: lost %d, doubled %d, reordered %d", r.point, r.broker, r.Lost, r.Doubled, r.Reordered), r.Err)
	case r.Err != nil:
		return fmt.Errorf("%s on %s: %w", r.point, r.broker, r.Err)
	case r.Kills < r.kills:
		return fmt.Errorf("%s on %s: %d kills of %d", r.point, r.broker, r.Kills, r.kills)
	case r.broker == wire.Calls && r.Calls <= r.Effects:
		return fmt.Errorf("%s on %s: %d calls for %d effects: nothing was called twice, and so nothing is proved", r.point, r.broker, r.Calls, r.Effects)
	}
	return nil
}

// Summary is the results of all groups.
type Summary struct {
	Results []Result
}

// Err is nil if all groups are well.
func (s Summary) Err() error {
	var errs []error
	for _, r := range s.Results {
		errs = append(errs, r.err())
	}
	return errors.Join(errs...)
}

// Total sums the groups up.
func (s Summary) Total() (total Result) {
	for _, r := range s.Results {
		total.Kills += r.Kills
		total.Redelivered += r.Redelivered
		total.Lost += r.Lost
		total.Doubled += r.Doubled
		total.Reordered += r.Reordered
		total.Calls += r.Calls
		total.Effects += r.Effects
	}
	return total
}

// Write writes a line for each point and broker, and a last one that sums up.
func (s Summary) Write(w io.Writer) {
	for _, r := range s.Results {
		fmt.Fprintf(w, "CHAOS point=%s broker=%s %s\n", r.point, r.broker, r.numbers())
	}
	fmt.Fprintf(w, "CHAOS %s\n", s.Total().numbers())
}

func (r Result) numbers() string {
	numbers := fmt.Sprintf("kills=%d redelivered=%d lost=%d doubled=%d reordered=%d", r.Kills, r.Redelivered, r.Lost, r.Doubled, r.Reordered)
	if r.Calls > 0 {
		numbers += fmt.Sprintf(" calls=%d effects=%d", r.Calls, r.Effects)
	}
	return numbers
}
