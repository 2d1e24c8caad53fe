package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/schema"
)

func callsCommands() []command {
	return []command{
		{name: "list", synopsis: " [flags]", summary: "List calls, newest first.", do: callsList},
		{name: "show", synopsis: " -consumer NAME MESSAGE [-step STEP] [flags]", summary: "Show the calls of one message, with their results.", do: callsShow},
		{
			name: "resolve", synopsis: " -consumer NAME MESSAGE... -done | -not-done | -retry -yes [flags]",
			summary: "Decide on calls of which nobody knows the end.", note: resolveNote + "\n\n" + asApplication, do: callsResolve,
		},
	}
}

// openCalls is what -state takes to mean calls that may need a person.
const openCalls = "open"

func callsList(ctx context.Context, c *call) error {
	c.needsDatabase()
	states := []string{openCalls}
	for s := calls.Started; s <= calls.Ready; s++ {
		states = append(states, s.String())
	}
	states = append(states, allStates)
	f := calls.Filter{}
	c.flags.StringVar(&f.Consumer, "consumer", "", "only of the consumer of this `name`")
	state := c.flags.String("state", openCalls, "only in this `state`: "+strings.Join(states, ", ")+"; open is unknown, and started by a process that is gone")
	c.flags.StringVar(&f.Step, "step", "", "only of this `step`")
	c.flags.IntVar(&f.Limit, "limit", 100, "how many to list")
	asJSON := c.flags.Bool("json", false, "print JSON")
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	at := slices.Index(states, *state)
	switch {
	case f.Limit < 1:
		return c.usage("-limit must be at least 1")
	case at < 0:
		return c.usage("-state %q: it is one of %s", *state, strings.Join(states, ", "))
	case *state == openCalls:
		f.Open = true
	case *state != allStates:
		f.State = calls.State(at) //nolint:gosec // one of six
	}
	return c.withCalls(ctx, f.Consumer, func(conn *pgx.Conn, store calls.Store) error {
		records, err := store.List(ctx, conn, f)
		switch {
		case err != nil:
			return err
		case *asJSON:
			return writeJSON(c.stdout, callObjects(records))
		case len(records) == 0:
			fmt.Fprintln(c.stdout, "no calls")
			return nil
		}
		if err := c.printCalls(records); err != nil {
			return err
		}
		if len(records) == f.Limit {
			fmt.Fprintln(c.stdout, "\nthere may be more: raise -limit, or narrow the list")
		}
		return nil
	})
}

// withCalls runs do on a database that has the tables, and the consumer if one is
// named.
func (c *call) withCalls(ctx context.Context, consumer string, do func(conn *pgx.Conn, store calls.Store) error) error {
	return c.withDatabase(ctx, func(conn *pgx.Conn) error {
		if err := schema.Check(ctx, conn, c.schema); err != nil {
			return err
		}
		if consumer != "" {
			if err := c.checkConsumer(ctx, conn, dlq.NewStore(c.schema), consumer); err != nil {
				return err
			}
		}
		return do(conn, calls.NewStore(c.schema))
	})
}

func (c *call) printCalls(records []calls.Record) error {
	t := newTable(c.stdout, "CONSUMER", "MESSAGE", "STEP", "STATE", "GENERATION", "ATTEMPTS", "SENT FIRST", "LETTER", "ERROR")
	for i := range records {
		r := &records[i]
		sent, letter := "", ""
		if !r.SentFirst.IsZero() {
			sent = whenOfCall(r.SentFirst)
		}
		if r.LetterID != 0 {
			letter = fmt.Sprintf("%d %s", r.LetterID, r.LetterState)
		}
		t.row(nameOr(r.Consumer, r.ConsumerID), r.Message, r.Step, callState(r), r.Generation, r.Attempts, sent, letter, r.Error)
	}
	return t.flush()
}

// callState is the state for a person.
func callState(r *calls.Record) string {
	switch {
	case r.UnderWay:
		return r.State.String() + ", under way"
	case r.State == calls.Done && r.Error != "":
		return "done, no result"
	}
	return r.State.String()
}

func callsShow(ctx context.Context, c *call) error {
	c.needsDatabase()
	f := calls.Filter{}
	c.flags.StringVar(&f.Consumer, "consumer", "", "`name` of the consumer whose message made the calls")
	c.flags.StringVar(&f.Step, "step", "", "only the call of this `step`")
	asJSON := c.flags.Bool("json", false, "print JSON; bytes that are no text as base64")
	arguments, err := c.parse()
	if err != nil {
		return err
	}
	if len(arguments) != 1 || f.Consumer == "" {
		return c.usage("%s needs -consumer and one argument, the id of a message: see \"semel calls list\"", c.path)
	}
	f.Message = arguments[0]
	return c.withCalls(ctx, f.Consumer, func(conn *pgx.Conn, store calls.Store) error {
		records, err := c.callsOf(ctx, conn, store, f)
		if err != nil {
			return err
		}
		var whole []object
		for i := range records {
			r, err := store.Load(ctx, conn, records[i].Ref)
			if err != nil {
				return err
			}
			if *asJSON {
				whole = append(whole, wholeCall(r))
				continue
			}
			if i > 0 {
				fmt.Fprintln(c.stdout)
			}
			printCall(c.stdout, r)
		}
		if *asJSON {
			return writeJSON(c.stdout, whole)
		}
		return nil
	})
}

// callsOf are the calls of one message, at least one.
func (c *call) callsOf(ctx context.Context, conn *pgx.Conn, store calls.Store, f calls.Filter) ([]calls.Record, error) {
	records, err := store.List(ctx, conn, f)
	if err == nil && len(records) == 0 {
		of := ""
		if f.Step != "" {
			of = fmt.Sprintf(" of step %q", f.Step)
		}
		err = fmt.Errorf("message %.255q of consumer %q has made no call%s", f.Message, f.Consumer, of)
	}
	return records, err
}

// printCall shows a call to a person.
func printCall(w io.Writer, r *calls.Record) {
	field := fields(w)
	field("consumer", nameOr(r.Consumer, r.ConsumerID))
	field("message", r.Message)
	field("claimed as", r.MessageID.String())
	field("step", r.Step)
	field("state", callState(r))
	field("generation", strconv.Itoa(r.Generation))
	field("attempts", strconv.Itoa(r.Attempts))
	field("key", r.Key)
	for _, at := range callTimes(r) {
		if !at.time.IsZero() {
			field(at.words, whenOfCall(at.time))
		}
	}
	field("resolved by", r.ResolvedBy)
	if r.LetterID != 0 {
		field("dead letter", fmt.Sprintf("%d, %s", r.LetterID, r.LetterState))
	}
	if r.Error != "" {
		fmt.Fprintf(w, "\nerror\n  %s\n", strings.ReplaceAll(printable(r.Error), "\n", "\n    "))
	}
	switch {
	case r.State != calls.Done || r.Error != "":
	case r.Encoded:
		fmt.Fprintf(w, "\nresult is encoded: %d bytes under key id %q\n", len(r.Result), r.KeyID)
	case r.Result == nil:
		fmt.Fprint(w, "\nno result\n")
	case len(r.Result) == 0:
		fmt.Fprint(w, "\nempty result\n")
	default:
		fmt.Fprintf(w, "\nresult, %d bytes\n%s", len(r.Result), body(r.Result))
	}
}
