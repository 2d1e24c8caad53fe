package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Level says how bad a finding is.
type Level int

// The levels, worst first.
const (
	Problem    Level = iota // the promise does not hold, or will not for long
	Warning                 // it holds, as long as something else does
	NotChecked              // nobody knows
	OK
)

// String is the level for people.
func (l Level) String() string {
	switch l {
	case Problem:
		return "problem"
	case Warning:
		return "warning"
	case NotChecked:
		return "not checked"
	case OK:
		return "ok"
	}
	return fmt.Sprintf("level %d", int(l))
}

// Finding is what a check found out.
type Finding struct {
	Check    string // which check: "topic"
	Object   string // of what: the name of a topic, a queue, a table; may be empty
	Consumer string // for which consumer; may be empty
	Level    Level

	Found string // what is so
	Why   string // why that matters; empty if all is well
	Do    string // what to do; empty if all is well

	// Failed says of what was not checked that it should have been: it was asked
	// for, and could not be looked at.
	Failed bool
}

// Sort puts the worst first and leaves the order of equals.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Level, b.Level) })
}

// Count returns how many findings have a level.
func Count(findings []Finding, level Level) int {
	n := 0
	for i := range findings {
		if findings[i].Level == level {
			n++
		}
	}
	return n
}

// Unasked is the finding of a check that could not look.
func Unasked(check, object string, err error, do string) Finding {
	return Finding{
		Check: check, Object: object, Level: NotChecked, Failed: true,
		Found: err.Error(), Why: "nobody knows whether this is right", Do: do,
	}
}
