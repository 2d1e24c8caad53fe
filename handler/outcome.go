package handler

import "strconv"

// Outcome is how a message ended. The numbers are stored; they never change.
type Outcome int16

// The outcomes. Duplicate and Mismatch say what became of one delivery and are
// never stored: the row of the message keeps the outcome of the first.
const (
	// Processed: the handler's writes are committed.
	Processed Outcome = 1
	// Superseded: strictly older than a message already handled; not run.
	Superseded Outcome = 2
	// Skipped: a person or a policy decided not to run it.
	Skipped Outcome = 3
	// Stored: accepted into the inbox, to be handled later.
	Stored Outcome = 4
	// Dead: in the dead letters, in front of a person.
	Dead Outcome = 5
	// Duplicate: its effect was committed before.
	Duplicate Outcome = 6
	// Mismatch: the id was seen before with another payload; this one was not run.
	Mismatch Outcome = 7
)

var outcomeNames = [...]string{
	Processed: "processed", Superseded: "superseded", Skipped: "skipped", Stored: "stored",
	Dead: "dead", Duplicate: "duplicate", Mismatch: "mismatch",
}

// String returns the outcome's name as it stands in SQL, logs and metrics.
func (o Outcome) String() string {
	if o > 0 && int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "Outcome(" + strconv.Itoa(int(o)) + ")"
}
