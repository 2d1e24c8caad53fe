package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

func outboxCommands() []command {
	return []command{
		{name: "status", synopsis: " [flags]", summary: "Show how much is to be published, and which relays do it.", do: outboxStatus},
		{name: "list", synopsis: " [flags]", summary: "List events: oldest first if they are to be published, else newest first.", do: outboxList},
		{name: "show", synopsis: " ID [flags]", summary: "Show one event with its payload.", do: outboxShow},
		{name: "retry", synopsis: " ID... | -quarantined -yes [flags]", summary: "Try events again at once that wait or are in quarantine.", do: outboxRetry},
		{name: "discard", synopsis: " ID... | -quarantined -yes [flags]", summary: "Decide that events are never published.", do: outboxDiscard},
		{name: "purge", synopsis: " -older AGE -yes [flags]", summary: "Archive, if asked to, and delete events that were published or discarded long ago.", do: outboxPurge},
		{name: "restore", synopsis: " FILE... [flags]", summary: "Put events back that were archived, or look at them.", note: aboutRestore, do: outboxRestore},
	}
}

// withOutbox runs do on a database that has the tables.
func (c *call) withOutbox(ctx context.Context, do func(conn *pgx.Conn, store outbox.Store) error) error {
	return c.withDatabase(ctx, func(conn *pgx.Conn) error {
		if err := schema.Check(ctx, conn, c.schema); err != nil {
			return err
		}
		return do(conn, outbox.NewStore(c.schema))
	})
}

// eventFilter adds the flags that choose events.
func (c *call) eventFilter() (f *outbox.Filter, quarantined *bool) {
	f = &outbox.Filter{}
	c.flags.StringVar(&f.AggregateType, "type", "", "only of aggregates of this `type`")
	c.flags.StringVar(&f.AggregateID, "id", "", "only of the aggregates of this `id`")
	c.flags.Var((*age)(&f.Older), "older", "only what was written longer ago than this `age`: 10m, 36h, 14d")
	c.flags.IntVar(&f.Limit, "limit", 100, "how many at most")
	return f, c.flags.Bool("quarantined", false, "only what the relay gave up on")
}

func outboxList(ctx context.Context, c *call) error {
	c.needsDatabase()
	states := []string{
		string(outbox.StatePending), string(outbox.StateWaiting), string(outbox.StateQuarantined),
		string(outbox.StatePublished), string(outbox.StateDiscarded), allStates,
	}
	f, quarantined := c.eventFilter()
	state := c.flags.String("state", allStates, "only in this `state`: "+strings.Join(states, ", "))
	asJSON := c.flags.Bool("json", false, "print JSON")
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	if f.Limit < 1 {
		return c.usage("-limit must be at least 1")
	}
	if !slices.Contains(states, *state) {
		return c.usage("-state %q: it is one of %s", *state, strings.Join(states, ", "))
	}
	switch {
	case *quarantined && *state != allStates && *state != string(outbox.StateQuarantined):
		return c.usage("-quarantined and -state %s exclude each other", *state)
	case *quarantined:
		f.State = outbox.StateQuarantined
	case *state != allStates:
		f.State = outbox.State(*state)
	}
	return c.withOutbox(ctx, func(conn *pgx.Conn, store outbox.Store) error {
		records, err := store.List(ctx, conn, *f)
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(c.stdout, eventObjects(records))
		}
		if len(records) == 0 {
			fmt.Fprintln(c.stdout, "no events")
			return nil
		}
		if err := c.printEvents(records); err != nil {
			return err
		}
		if len(records) == f.Limit {
			fmt.Fprintf(c.stdout, "\nthere may be more: see -limit\n")
		}
		return nil
	})
}

func (c *call) printEvents(records []outbox.Record) error {
	t := newTable(c.stdout, "ID", "STATE", "AGGREGATE", "TYPE", "WRITTEN", "ATTEMPTS", "ERROR")
	for i := range records {
		r := &records[i]
		t.row(r.ID, r.State, r.AggregateType+" "+r.AggregateID, r.Type, when(r.CreatedAt), r.Attempts, r.LastError)
	}
	return t.flush()
}

func outboxStatus(ctx context.Context, c *call) error {
	c.needsDatabase()
	asJSON := c.flags.Bool("json", false, "print JSON")
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	return c.withOutbox(ctx, func(conn *pgx.Conn, store outbox.Store) error {
		st, err := store.Status(ctx, conn)
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(c.stdout, statusObject(st))
		}
		return c.printStatus(st)
	})
}

func (c *call) printStatus(st *outbox.Status) error {
	if len(st.Kinds) == 0 {
		fmt.Fprintln(c.stdout, "nothing is to be published")
	} else {
		t := newTable(c.stdout, "AGGREGATE TYPE", "PENDING", "WAITING", "QUARANTINED", "OLDEST")
		for _, k := range st.Kinds {
			oldest := ""
			if k.Oldest > 0 {
				oldest = ageText(k.Oldest)
			}
			t.row(k.AggregateType, k.Pending, k.Waiting, k.Quarantined, oldest)
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	if st.AtLeast {
		fmt.Fprintln(c.stdout, "\nthere is more than was counted")
	}
	fmt.Fprintln(c.stdout)
	if len(st.Relays) == 0 {
		fmt.Fprintln(c.stdout, "no relay runs: nothing is published")
	} else {
		t := newTable(c.stdout, "RELAY", "SHARDS", "SINCE")
		for _, r := range st.Relays {
			t.row(r.Name, r.Shards, when(r.StartedAt))
		}
		if err := t.flush(); err != nil {
			return err
		}
		if st.UnownedShards > 0 {
			fmt.Fprintf(c.stdout, "\n%d of 256 shards have no relay: their events wait\n", st.UnownedShards)
		}
	}
	rows := "an unknown number of"
	if st.Rows >= 0 {
		rows = fmt.Sprintf("about %d", st.Rows)
	}
	fmt.Fprintf(c.stdout, "\n%s events kept in all, %s on disk\n", rows, sizeText(st.Bytes))
	return nil
}

// sizeText is a number of bytes for a person.
func sizeText(bytes int64) string {
	const kB, MB, GB = 1 << 10, 1 << 20, 1 << 30
	switch {
	case bytes >= 10*GB:
		return fmt.Sprintf("%d GB", bytes/GB)
	case bytes >= 10*MB:
		return fmt.Sprintf("%d MB", bytes/MB)
	}
	return fmt.Sprintf("%d kB", bytes/kB)
}

func statusObject(st *outbox.Status) object {
	kinds := make([]object, 0, len(st.Kinds))
	for _, k := range st.Kinds {
		o := object{"aggregate_type": k.AggregateType, "pending": k.Pending, "waiting": k.Waiting, "quarantined": k.Quarantined, "oldest_seconds": nil}
		if k.Oldest > 0 {
			o["oldest_seconds"] = k.Oldest.Truncate(time.Millisecond).Seconds()
		}
		kinds = append(kinds, o)
	}
	relays := make([]object, 0, len(st.Relays))
	for _, r := range st.Relays {
		o := object{"id": r.ID, "name": r.Name, "shards": r.Shards}
		o.putTime("started_at", r.StartedAt)
		relays = append(relays, o)
	}
	out := object{"aggregate_types": kinds, "at_least": st.AtLeast, "relays": relays, "unowned_shards": st.UnownedShards, "bytes": st.Bytes, "rows": nil}
	if st.Rows >= 0 {
		out["rows"] = st.Rows
	}
	return out
}
