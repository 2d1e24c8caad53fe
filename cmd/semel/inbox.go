package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/schema"
)

func inboxCommands() []command {
	return []command{
		{name: "status", synopsis: " [flags]", summary: "Show how much waits to be handled, and for what.", do: inboxStatus},
		{name: "list", synopsis: " [flags]", summary: "List the messages that wait, in the order stored.", do: inboxList},
		{name: "show", synopsis: " -consumer NAME ID | -seq N [flags]", summary: "Show one message that waits, with its payload.", do: inboxShow},
		{name: "run-now", synopsis: " -consumer NAME ID... -yes [flags]", summary: "Make messages ready that wait for their next attempt.", note: asApplication, do: inboxRunNow},
		{name: "purge", synopsis: " -older AGE -yes [flags]", summary: "Delete the records of messages that were handled long ago.", note: asApplication, do: inboxPurge},
	}
}

// withInbox runs do on a database that has the tables, and the consumer if one is
// named.
func (c *call) withInbox(ctx context.Context, consumer string, do func(conn *pgx.Conn, store inbox.Store) error) error {
	return c.withDatabase(ctx, func(conn *pgx.Conn) error {
		if err := schema.Check(ctx, conn, c.schema); err != nil {
			return err
		}
		if consumer != "" {
			if err := c.checkConsumer(ctx, conn, dlq.NewStore(c.schema), consumer); err != nil {
				return err
			}
		}
		return do(conn, inbox.NewStore(c.schema))
	})
}

func inboxStatus(ctx context.Context, c *call) error {
	c.needsDatabase()
	asJSON := c.flags.Bool("json", false, "print JSON")
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	return c.withInbox(ctx, "", func(conn *pgx.Conn, store inbox.Store) error {
		st, err := store.Status(ctx, conn)
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(c.stdout, inboxStatusObject(st))
		}
		return c.printInboxStatus(st)
	})
}

func (c *call) printInboxStatus(st *inbox.Status) error {
	if len(st.Consumers) == 0 {
		fmt.Fprintln(c.stdout, "nothing waits in the inbox")
		return nil
	}
	t := newTable(c.stdout, "CONSUMER", "READY", "DELAYED", "TAKEN", "BEHIND", "PARKED", "READY FOR", "OLDEST", "NEXT DUE")
	for i := range st.Consumers {
		s := &st.Consumers[i]
		readyFor, oldest, next := "", "", ""
		if s.OldestReady > 0 {
			readyFor = ageText(s.OldestReady)
		}
		if s.Oldest > 0 {
			oldest = ageText(s.Oldest)
		}
		if !s.NextDue.IsZero() {
			next = when(s.NextDue)
		}
		t.row(nameOr(s.Consumer, s.ConsumerID), s.Ready, s.Delayed, s.Taken, s.Behind, s.Parked, readyFor, oldest, next)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if st.AtLeast {
		fmt.Fprintln(c.stdout, "\nthere is more than was counted")
	}
	return nil
}

func inboxList(ctx context.Context, c *call) error {
	c.needsDatabase()
	states := []string{
		string(inbox.StateReady), string(inbox.StateDelayed), string(inbox.StateTaken),
		string(inbox.StateBehind), string(inbox.StateParked), allStates,
	}
	f := inbox.Filter{}
	c.flags.StringVar(&f.Consumer, "consumer", "", "only of the consumer of this `name`")
	state := c.flags.String("state", allStates, "only in this `state`: "+strings.Join(states, ", "))
	c.flags.StringVar(&f.Type, "type", "", "only messages of this `type`")
	key := c.flags.String("key", "", "only messages of this `key`")
	c.flags.IntVar(&f.Limit, "limit", 100, "how many to list")
	c.flags.Int64Var(&f.After, "after", 0, "only those with a greater `seq`: the next page")
	asJSON := c.flags.Bool("json", false, "print JSON")
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	if f.Limit < 1 || f.After < 0 {
		return c.usage("-limit must be at least 1 and -after not negative")
	}
	if !slices.Contains(states, *state) {
		return c.usage("-state %q: it is one of %s", *state, strings.Join(states, ", "))
	}
	if *state != allStates {
		f.State = inbox.State(*state)
	}
	f.Key = []byte(*key)
	return c.withInbox(ctx, f.Consumer, func(conn *pgx.Conn, store inbox.Store) error {
		records, err := store.List(ctx, conn, f)
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(c.stdout, storedObjects(records))
		}
		if len(records) == 0 {
			fmt.Fprintln(c.stdout, "no messages")
			return nil
		}
		if err := c.printStored(records); err != nil {
			return err
		}
		if len(records) == f.Limit {
			fmt.Fprintf(c.stdout, "\nthere may be more: go on with -after %d\n", records[len(records)-1].Seq)
		}
		return nil
	})
}

func (c *call) printStored(records []inbox.Record) error {
	t := newTable(c.stdout, "SEQ", "CONSUMER", "STATE", "READY", "KEY", "TYPE", "MESSAGE", "ATTEMPTS", "LETTER", "ERROR")
	for i := range records {
		r := &records[i]
		ready, letter := "", ""
		if !r.ReadyAt.IsZero() {
			ready = when(r.ReadyAt)
		}
		if r.DeadLetterID != 0 {
			letter = fmt.Sprint(r.DeadLetterID)
		}
		t.row(r.Seq, nameOr(r.Consumer, r.ConsumerID), r.State, ready, string(r.Message.Key), r.Message.Type, r.Message.ID, r.Attempts, letter, trouble(r))
	}
	return t.flush()
}

// trouble is what keeps a message from being handled, as far as its row tells.
func trouble(r *inbox.Record) string {
	if len(r.Damage) > 0 {
		return "DAMAGED: " + strings.Join(r.Damage, "; ")
	}
	return firstOf(r.Errors)
}
