package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/schema"
)

func dlqCommands() []command {
	return []command{
		{name: "list", synopsis: " [flags]", summary: "List dead letters, newest first.", do: dlqList},
		{name: "show", synopsis: " ID [flags]", summary: "Show one dead letter with its message.", do: dlqShow},
		{name: "assign", synopsis: " ID... -to NAME -yes [flags]", summary: "Say who looks after dead letters.", note: asApplication, do: dlqAssign},
		{name: "replay", synopsis: " ID... | -consumer NAME -reason REASON... -yes [flags]", summary: "Have dead letters handled again.", note: asApplication, do: dlqReplay},
		{name: "discard", synopsis: " ID... -yes [flags]", summary: "Decide that dead letters are never handled.", note: asApplication, do: dlqDiscard},
		{name: "purge", synopsis: " -older AGE | -redact-after AGE -yes [flags]", summary: "Delete dead letters, or their payloads, that a person was done with long ago.", note: asApplication, do: dlqPurge},
	}
}

// allStates is what -state takes to mean no filter.
const allStates = "all"

func dlqList(ctx context.Context, c *call) error {
	c.needsDatabase()
	states := []string{string(dlq.Open), string(dlq.Replaying), string(dlq.Resolved), string(dlq.Discarded), allStates}
	f := dlq.Filter{}
	c.flags.StringVar(&f.Consumer, "consumer", "", "only of the consumer of this `name`")
	state := c.flags.String("state", string(dlq.Open), "only in this `state`: "+strings.Join(states, ", "))
	reason := c.flags.String("reason", "", "only dead for this `reason`")
	c.flags.StringVar(&f.Type, "type", "", "only messages of this `type`")
	c.flags.StringVar(&f.Owner, "owner", "", "only those that this `name` looks after")
	c.flags.BoolVar(&f.Unowned, "unowned", false, "only those that nobody looks after")
	c.flags.IntVar(&f.Limit, "limit", 100, "how many to list")
	c.flags.Int64Var(&f.Before, "before", 0, "only those with a smaller `id`: the next page")
	asJSON := c.flags.Bool("json", false, "print JSON")
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	if f.Limit < 1 || f.Before < 0 {
		return c.usage("-limit must be at least 1 and -before not negative")
	}
	if f.Unowned && f.Owner != "" {
		return c.usage("-owner and -unowned exclude each other")
	}
	if !slices.Contains(states, *state) {
		return c.usage("-state %q: it is one of %s", *state, strings.Join(states, ", "))
	}
	if *state != allStates {
		f.State = dlq.State(*state)
	}
	f.Reason = dlq.Reason(*reason)

	return c.withLetters(ctx, func(conn *pgx.Conn, store dlq.Store) error {
		letters, err := store.List(ctx, conn, f)
		if err != nil {
			return err
		}
		if len(letters) == 0 && f.Consumer != "" {
			if err := c.checkConsumer(ctx, conn, store, f.Consumer); err != nil {
				return err
			}
		}
		if *asJSON {
			objects := make([]object, 0, len(letters))
			for i := range letters {
				objects = append(objects, summary(&letters[i]))
			}
			return writeJSON(c.stdout, objects)
		}
		total, err := store.Count(ctx, conn, f)
		if err != nil {
			return err
		}
		return c.printList(letters, total, f.Before)
	})
}

// withLetters runs do on a database that has the tables.
func (c *call) withLetters(ctx context.Context, do func(conn *pgx.Conn, store dlq.Store) error) error {
	return c.withDatabase(ctx, func(conn *pgx.Conn) error {
		if err := schema.Check(ctx, conn, c.schema); err != nil {
			return err
		}
		return do(conn, dlq.NewStore(c.schema))
	})
}

// checkConsumer tells a consumer without dead letters from a name mistyped.
func (c *call) checkConsumer(ctx context.Context, conn *pgx.Conn, store dlq.Store, name string) error {
	names, err := store.Consumers(ctx, conn)
	if err != nil || slices.Contains(names, name) {
		return err
	}
	return noConsumer(name, names)
}

// noConsumer tells what a name could have meant.
func noConsumer(name string, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("no consumer %q: none has run here yet", name)
	}
	return fmt.Errorf("no consumer %q: there are %s", name, strings.Join(names, ", "))
}

func (c *call) printList(letters []dlq.Letter, total, before int64) error {
	if len(letters) == 0 {
		fmt.Fprintln(c.stdout, "no dead letters")
		return nil
	}
	if err := c.printLetters(letters); err != nil {
		return err
	}
	if before == 0 && total > int64(len(letters)) {
		fmt.Fprintf(c.stdout, "\n%d of %d; go on with -before %d\n", len(letters), total, letters[len(letters)-1].ID)
	}
	return nil
}

func (c *call) printLetters(letters []dlq.Letter) error {
	t := newTable(c.stdout, "ID", "CONSUMER", "REASON", "STATE", "OWNER", "COPIES", "ATTEMPTS", "LAST FAILED", "TYPE", "MESSAGE", "ERROR")
	for i := range letters {
		l := &letters[i]
		t.row(l.ID, consumerName(l), l.Reason, l.State, l.Owner, l.Count, l.Attempts, when(l.LastFailedAt), l.Message.Type, l.Message.ID, firstOf(l.Errors))
	}
	return t.flush()
}

func consumerName(l *dlq.Letter) string { return nameOr(l.Consumer, l.ConsumerID) }

// nameOr is the name of a consumer, or its number where it is not registered.
func nameOr(name string, id int32) string {
	if name != "" {
		return name
	}
	return "consumer " + strconv.Itoa(int(id))
}

func firstOf(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}
