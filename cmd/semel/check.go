package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// errOver is a check that found a limit passed. It has told so.
var errOver = errors.New("over a limit")

// check compares what waits with limits. Exit code 2 says that one is passed;
// whatever keeps it from finding out, the command line too, is a 1.
func check(ctx context.Context, c *call) error {
	err := c.check(ctx)
	var usage *usageError
	if errors.As(err, &usage) {
		return errors.New(usage.Error())
	}
	return err
}

func (c *call) check(ctx context.Context) error {
	c.needsDatabase()
	var maxAge age
	c.flags.Var(&maxAge, "max-pending-age", "how long ago the oldest event may have been written that is to be published and not in quarantine: an `age` as 5m")
	maxQuarantined := c.flags.Int64("max-quarantined", 0, "how many events may be in quarantine")
	maxDead := c.flags.Int64("max-dead", 0, "how many dead letters may be open")
	maxUnowned := c.flags.Int64("max-unowned", 0, "how many dead letters may be open that nobody looks after")
	maxUnknown := c.flags.Int64("max-unknown-calls", 0, "how many calls to the outside there may be of which nobody can tell whether they were done")
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	asked := map[string]bool{}
	c.flags.Visit(func(f *flag.Flag) { asked[f.Name] = true })
	if !asked["max-pending-age"] && !asked["max-quarantined"] && !asked["max-dead"] && !asked["max-unowned"] && !asked["max-unknown-calls"] {
		return c.usage("say what to check: -max-pending-age, -max-quarantined, -max-dead, -max-unowned, -max-unknown-calls")
	}
	if *maxQuarantined < 0 || *maxDead < 0 || *maxUnowned < 0 || *maxUnknown < 0 {
		return c.usage("-max-quarantined, -max-dead, -max-unowned and -max-unknown-calls must not be negative")
	}
	return c.withDatabase(ctx, func(conn *pgx.Conn) error {
		if err := schema.Check(ctx, conn, c.schema); err != nil {
			return err
		}
		var events outbox.KindStatus
		if asked["max-pending-age"] || asked["max-quarantined"] {
			st, err := outbox.NewStore(c.schema).Status(ctx, conn)
			if err != nil {
				return err
			}
			events = st.Total()
		}
		over := false
		say := func(name, figure, limit string, isOver bool) {
			verdict := "ok"
			if isOver {
				verdict, over = "OVER", true
			}
			fmt.Fprintf(c.stdout, "%-4s %s %s, limit %s\n", verdict, name, figure, limit)
		}
		if asked["max-pending-age"] {
			limit := time.Duration(maxAge)
			say("pending age", ageText(events.Oldest), ageText(limit), events.Oldest > limit)
		}
		if asked["max-quarantined"] {
			say("quarantined", strconv.FormatInt(events.Quarantined, 10), strconv.FormatInt(*maxQuarantined, 10), events.Quarantined > *maxQuarantined)
		}
		letters := []struct {
			name, flag string
			limit      int64
			filter     dlq.Filter
		}{
			{"dead", "max-dead", *maxDead, dlq.Filter{State: dlq.Open}},
			{"unowned", "max-unowned", *maxUnowned, dlq.Filter{State: dlq.Open, Unowned: true}},
		}
		for _, l := range letters {
			if !asked[l.flag] {
				continue
			}
			n, err := dlq.NewStore(c.schema).Count(ctx, conn, l.filter)
			if err != nil {
				return err
			}
			say(l.name, strconv.FormatInt(n, 10), strconv.FormatInt(l.limit, 10), n > l.limit)
		}
		if asked["max-unknown-calls"] {
			n, err := calls.NewStore(c.schema).CountUnknown(ctx, conn)
			if err != nil {
				return err
			}
			say("unknown calls", strconv.FormatInt(n, 10), strconv.FormatInt(*maxUnknown, 10), n > *maxUnknown)
		}
		if over {
			return errOver
		}
		return nil
	})
}
