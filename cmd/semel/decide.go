package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// decision is what a person decides on rows: events, whose ids are texts, or dead
// letters, whose ids are numbers.
type decision[ID comparable] struct {
	things    string                                // what the rows are: "events"
	will, did string                                // "never publishes", "discarded"
	unchanged string                                // what to say of one that it cannot change
	why       map[ID]string                         // and of those of which more is known
	chosen    []ID                                  // those it is about
	objects   []object                              // the same as JSON
	print     func() error                          // and for a person
	do        func(ids []ID) ([]ID, error)          // decides, and returns those that it changed
	state     func(id ID) (state string, err error) // where one stands now, "gone" if nowhere
}

// confirmation is the end of the command line of all decisions.
type confirmation struct{ yes, asJSON bool }

func (c *call) confirmFlags(things string) *confirmation {
	f := &confirmation{}
	c.flags.BoolVar(&f.yes, "yes", false, "do it; without it only show the "+things)
	c.flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	return f
}

// decide shows what is chosen, and with -yes does it.
func decide[ID comparable](c *call, f *confirmation, d decision[ID]) error {
	if !f.asJSON {
		if len(d.chosen) == 0 {
			fmt.Fprintf(c.stdout, "no %s\n", d.things)
			return nil
		}
		fmt.Fprintf(c.stdout, "%s:\n", d.will)
		if err := d.print(); err != nil {
			return err
		}
	} else if !f.yes {
		if err := writeJSON(c.stdout, d.objects); err != nil {
			return err
		}
	}
	if !f.yes {
		return errNotConfirmed
	}
	changed, err := d.do(d.chosen)
	return errors.Join(err, report(c, f, d, changed))
}

// report says what was done, and why the rest was not.
func report[ID comparable](c *call, f *confirmation, d decision[ID], changed []ID) error {
	objects := make([]object, 0, len(d.chosen))
	if !f.asJSON {
		fmt.Fprintf(c.stdout, "\n%d of %d %s\n", len(changed), len(d.chosen), d.did)
	}
	for _, id := range d.chosen {
		state, err := d.state(id)
		if err != nil {
			return err
		}
		done := slices.Contains(changed, id)
		o := object{"id": id, "changed": done, "state": state}
		if !done {
			o.putText("why", d.why[id])
		}
		objects = append(objects, o)
		if !done && !f.asJSON {
			fmt.Fprintf(c.stdout, "%s is %s: %s\n", printable(fmt.Sprint(id)), state, printable(cmp.Or(d.why[id], d.unchanged)))
		}
	}
	if f.asJSON {
		if err := writeJSON(c.stdout, objects); err != nil {
			return err
		}
	}
	if left := len(d.chosen) - len(changed); left > 0 {
		return fmt.Errorf("%d of %d %s were not changed", left, len(d.chosen), d.things)
	}
	return nil
}

// gone is the state of what is no more.
const gone = "gone"
