package provider

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is something that goes wrong with a request.
type Fault string

// The faults. The first two do no work, the others do it.
const (
	ResetBefore Fault = "reset-before" // the connection is reset, nothing was done
	Unavailable Fault = "unavailable"  // 503, nothing was done

	ResetAfter   Fault = "reset-after"   // the connection is reset behind the work
	Silent       Fault = "silent"        // the work is done, and nobody is told: a time-out
	Late         Fault = "late"          // the work is done after Faults.LateBy, when the client has given up
	ErrorAfter   Fault = "error-after"   // 500 behind the work
	AnswerTwice  Fault = "answer-twice"  // the answer comes two times on the connection
	GarbageAfter Fault = "garbage-after" // bytes that are no answer come behind it
	Die          Fault = "die"           // the process kills itself behind the work
)

// What goes wrong for all, and not by chance. Nothing is done.
const (
	Maintenance  Fault = "maintenance"  // 503 with Retry-After
	Unauthorized Fault = "unauthorized" // 401
)

// AllFaults returns all faults.
func AllFaults() []Fault {
	return []Fault{ResetBefore, Unavailable, ResetAfter, Silent, Late, ErrorAfter, AnswerTwice, GarbageAfter, Die}
}

// Faults is what goes wrong. Queries meet only what is before the work.
type Faults struct {
	// Script is what happens to the next calls, one each, "" nothing. Then comes
	// chance.
	Script []Fault `json:"script,omitempty"`

	// Chance is how likely each fault is to meet a call: 0 to 1, and 1 in all.
	Chance map[Fault]float64 `json:"chance,omitempty"`

	// LateBy is how long work takes that is late.
	LateBy time.Duration `json:"late_by,omitempty"`

	// Until is the end of the maintenance. Before it all is answered with 503, and
	// with how long that takes.
	Until time.Time `json:"until,omitzero"`

	// Secret, if set, must come as a bearer token: 401 without.
	Secret string `json:"secret,omitempty"`
}

func (f Faults) validate() error {
	sum := 0.0
	for fault, chance := range f.Chance {
		if !slices.Contains(AllFaults(), fault) {
			return fmt.Errorf("unknown fault %q: use some of %v", fault, AllFaults())
		}
		if chance < 0 || chance > 1 {
			return fmt.Errorf("the chance of %s is %g: it must be between 0 and 1", fault, chance)
		}
		sum += chance
	}
	if sum > 1 {
		return fmt.Errorf("the chances of all faults are %g: they must be at most 1", sum)
	}
	for _, fault := range f.Script {
		if fault != "" && !slices.Contains(AllFaults(), fault) {
			return fmt.Errorf("unknown fault %q: use some of %v", fault, AllFaults())
		}
	}
	if f.LateBy < 0 {
		return fmt.Errorf("late work takes %s: it must not be negative", f.LateBy)
	}
	return nil
}

// next draws what happens to the next call.
func (f *Faults) next(random *rand.Rand) Fault {
	if len(f.Script) > 0 {
		fault := f.Script[0]
		f.Script = f.Script[1:]
		return fault
	}
	return f.draw(random, AllFaults())
}

// draw draws one of these faults, or none.
func (f *Faults) draw(random *rand.Rand, of []Fault) Fault {
	drawn := random.Float64()
	for _, fault := range of {
		if drawn < f.Chance[fault] {
			return fault
		}
		drawn -= f.Chance[fault]
	}
	return ""
}
