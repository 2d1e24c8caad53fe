package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/dlq"
)

const resolveNote = `Look at the provider first: was it done?

  -done      it was: the message goes on with the result in FILE, or with none
  -not-done  it was not, and will not be: it is made again under a new key
  -retry     make it again under the same key: the provider recognises it, or
             doing it twice does no harm

Only calls are decided on whose end nobody knows and that nobody has in hand, and
those that are done without a result. The message goes on when its dead letter is
replayed.`

// maxResultFile is the size that a result may have, in bytes.
const maxResultFile = 1 << 20

func callsResolve(ctx context.Context, c *call) error {
	c.needsDatabase()
	consumer := c.flags.String("consumer", "", "`name` of the consumer whose messages made the calls")
	step := c.flags.String("step", "", "only the call of this `step`; needed if a message waits for several")
	done := c.flags.Bool("done", false, "the provider has done it")
	notDone := c.flags.Bool("not-done", false, "the provider has not done it and will not")
	retry := c.flags.Bool("retry", false, "make it again under the same key")
	file := c.flags.String("result", "", "the result is in this `file`, byte for byte; with -done")
	by := c.byFlag()
	confirmed := c.confirmFlags("calls")
	messages, err := c.parse()
	if err != nil {
		return err
	}
	r := calls.Resolution{}
	decisions := 0
	for _, d := range []struct {
		given    bool
		decision calls.Decision
	}{{*done, calls.WasDone}, {*notDone, calls.NotDone}, {*retry, calls.Retry}} {
		if d.given {
			r.Decision = d.decision
			decisions++
		}
	}
	switch {
	case len(messages) == 0 || *consumer == "":
		return c.usage("%s needs -consumer and the ids of messages: see \"semel calls list\"", c.path)
	case decisions != 1:
		return c.usage("say what you found out: -done, -not-done or -retry")
	case *file != "" && (!*done || len(messages) > 1):
		return c.usage("-result is for one message, with -done")
	}
	if r.By, err = c.who(*by); err != nil {
		return err
	}
	if *file != "" {
		if r.Result, err = readResult(*file); err != nil {
			return err
		}
	}
	return c.withCalls(ctx, *consumer, func(conn *pgx.Conn, store calls.Store) error {
		var chosen []calls.Record
		for _, message := range messages {
			records, err := c.callsOf(ctx, conn, store, calls.Filter{Consumer: *consumer, Message: message, Step: *step})
			if err != nil {
				return err
			}
			if open := slices.DeleteFunc(slices.Clone(records), func(r calls.Record) bool { return isKnown(&r) }); len(open) > 0 {
				records = open
			}
			if len(records) > 1 {
				return c.usage("message %.255q waits for several calls: say with -step which: %s", printable(message), steps(records))
			}
			if !slices.ContainsFunc(chosen, func(r calls.Record) bool { return r.Ref == records[0].Ref }) {
				chosen = append(chosen, records[0])
			}
		}
		return c.resolve(ctx, conn, store, confirmed, r, chosen)
	})
}

// resolve shows the calls, and with -yes decides on them.
func (c *call) resolve(ctx context.Context, conn *pgx.Conn, store calls.Store, confirmed *confirmation, r calls.Resolution, records []calls.Record) error {
	d := decision[string]{things: "calls", unchanged: "somebody was faster", objects: callObjects(records), why: map[string]string{}}
	d.will, d.did = "takes for done", "taken for done"
	switch r.Decision {
	case calls.WasDone:
		if r.Result != nil {
			d.will += fmt.Sprintf(", with a result of %d bytes", len(r.Result))
		} else {
			d.will += ", without a result"
		}
	case calls.NotDone:
		d.will, d.did = "takes for not done, and makes again under a new key", "taken for not done"
	case calls.Retry:
		d.will, d.did = "makes again under the same key", "to be made again"
	}
	byID := map[string]*calls.Record{}
	var changed []string
	for i := range records {
		id := records[i].Message + " " + records[i].Step
		byID[id] = &records[i]
		d.chosen = append(d.chosen, id)
	}
	d.print = func() error { return c.printCalls(records) }
	d.do = func(ids []string) ([]string, error) {
		for _, id := range ids {
			refs, err := store.Resolve(ctx, conn, r, byID[id].Ref)
			if err != nil {
				return changed, err
			}
			if len(refs) > 0 {
				changed = append(changed, id)
			}
		}
		return changed, nil
	}
	d.state = func(id string) (string, error) {
		now, err := store.Load(ctx, conn, byID[id].Ref)
		if errors.Is(err, calls.ErrNotFound) {
			return gone, nil
		}
		if err != nil {
			return "", err
		}
		d.why[id] = whyNotResolved(now)
		return callState(now), nil
	}
	err := decide(c, confirmed, d)
	for _, id := range changed {
		if !confirmed.asJSON {
			c.printHowItGoesOn(byID[id])
		}
	}
	return err
}

// isKnown reports whether nobody need decide on a call.
func isKnown(r *calls.Record) bool {
	return r.State == calls.Failed || r.State == calls.Ready || r.State == calls.Done && r.Error == ""
}

// whyNotResolved says why a call, as it stands now, was not changed.
func whyNotResolved(r *calls.Record) string {
	by := ""
	if r.ResolvedBy != "" {
		by = ", decided by " + r.ResolvedBy
	}
	end := latest(r)
	switch {
	case r.UnderWay && !end.IsZero():
		return "decide after " + when(end)
	case r.State == calls.Done && r.Error != "":
		return "only -done can give it a result"
	case r.State == calls.Failed || r.State == calls.Ready:
		return "it is made again when its message is handled again" + by
	}
	return "there is nothing to decide" + by
}

// latest is when a call that is under way has ended for certain. What no process
// can have taken it for somebody has set by hand, and it keeps nobody from a decision.
func latest(r *calls.Record) (end time.Time) {
	for _, t := range []time.Time{r.LeaseUntil, r.Deadline} {
		if t.After(end) && t.Before(time.Now().AddDate(300, 0, 0)) {
			end = t
		}
	}
	return end
}

// printHowItGoesOn says what has the message of a call handled again.
func (c *call) printHowItGoesOn(r *calls.Record) {
	switch {
	case r.LetterID == 0:
		fmt.Fprintf(c.stdout, "%s has no dead letter: it goes on with its next attempt\n", printable(r.Message))
	case r.LetterState == string(dlq.Open):
		fmt.Fprintf(c.stdout, "%s goes on when its dead letter is replayed: semel dlq replay %d -yes\n", printable(r.Message), r.LetterID)
	}
}

func steps(records []calls.Record) string {
	text := ""
	for i := range records {
		if i > 0 {
			text += ", "
		}
		text += printable(records[i].Step)
	}
	return text
}

// readResult reads a file that may not be too large to store.
func readResult(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the person at the command line says which
	if err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	result, err := io.ReadAll(io.LimitReader(f, maxResultFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the result: %w", err)
	case len(result) > maxResultFile:
		return nil, fmt.Errorf("the result in %s is larger than %d bytes", path, maxResultFile)
	}
	return result, nil
}
