package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/inbox"
)

// replay is the command line of semel dlq replay.
type replay struct {
	filter    dlq.Filter
	rate      rate
	stopAfter int
	reopen    bool
	by        string
	*confirmation
}

func dlqReplay(ctx context.Context, c *call) error {
	c.needsDatabase()
	r := &replay{rate: 50}
	c.flags.StringVar(&r.filter.Consumer, "consumer", "", "those of the consumer of this `name` that are open")
	reason := c.flags.String("reason", "", "only dead for this `reason`")
	c.flags.StringVar(&r.filter.Type, "type", "", "only messages of this `type`")
	c.flags.StringVar(&r.filter.Owner, "owner", "", "only those that this `name` looks after")
	c.flags.IntVar(&r.filter.Limit, "limit", 0, "how many at most, the oldest first (default all)")
	c.flags.Var(&r.rate, "rate", "how many begin in a second or a minute, as a `rate`: 50/s, 30/m")
	c.flags.IntVar(&r.stopAfter, "stop-after", 10, "stop when so many have died again; -1: do not stop")
	c.flags.BoolVar(&r.reopen, "reopen", false, "discarded ones: as new messages at the end of their key")
	by := c.byFlag()
	r.confirmation = c.confirmFlags("dead letters")
	arguments, err := c.parse()
	if err != nil {
		return err
	}
	r.filter.State, r.filter.Reason = dlq.Open, dlq.Reason(*reason)
	chosen := r.filter.Consumer != "" || *reason != "" || r.filter.Type != "" || r.filter.Owner != ""
	switch {
	case len(arguments) > 0 && (chosen || r.filter.Limit != 0):
		return c.usage("name dead letters by their ids or choose them by flags, not both")
	case len(arguments) == 0 && r.reopen:
		return c.usage("-reopen needs the ids of dead letters, see \"semel dlq list -state discarded\"")
	case len(arguments) == 0 && !chosen:
		return c.usage("name dead letters by their ids, or choose them with -consumer, -reason, -type or -owner")
	case r.filter.Limit < 0:
		return c.usage("-limit must not be negative")
	case r.stopAfter < -1 || r.stopAfter == 0:
		return c.usage("-stop-after must be at least 1, or -1")
	}
	if r.by, err = c.who(*by); err != nil {
		return err
	}
	if len(arguments) == 0 {
		return c.replayChosen(ctx, r)
	}
	ids, err := c.letterIDs(arguments)
	if err != nil {
		return err
	}
	return c.replayNamed(ctx, r, ids)
}

// replayNamed replays the letters of these ids.
func (c *call) replayNamed(ctx context.Context, r *replay, ids []int64) error {
	store := inbox.NewStore(c.schema)
	again := func(conn *pgx.Conn, l *dlq.Letter) error {
		if replaying, err := store.IsReplaying(ctx, conn, l); err != nil {
			return err
		} else if replaying {
			return fmt.Errorf("%w: it is being handled again already", inbox.ErrNoDeadLetter)
		}
		return store.Replay(ctx, conn, l.ID, r.by)
	}
	d := decision[int64]{will: "handles again", did: "are handled again"}
	if r.reopen {
		d.will, d.did = "handles again as new messages, at the end of their keys", "are handled again as new messages"
		again = func(conn *pgx.Conn, l *dlq.Letter) error { return store.Reopen(ctx, conn, l.ID, r.by) }
	}
	begun := 0
	err := c.decideEach(ctx, ids, r.confirmation, d, func(conn *pgx.Conn, l *dlq.Letter) error {
		err := again(conn, l)
		if err == nil {
			begun++
		}
		return err
	})
	if begun > 0 && !r.asJSON {
		c.printWaiting("")
	}
	return err
}

// printWaiting says that what is handled again needs somebody to do it.
func (c *call) printWaiting(consumer string) {
	if consumer != "" {
		consumer = " -consumer " + consumer
	}
	fmt.Fprintf(c.stdout, "\nwhat is handled again waits in the inbox until a process works it (Run or Work): semel inbox list%s\n", printable(consumer))
}

func dlqDiscard(ctx context.Context, c *call) error {
	c.needsDatabase()
	by := c.byFlag()
	confirmed := c.confirmFlags("dead letters")
	ids, err := c.parseLetterIDs()
	if err != nil {
		return err
	}
	name, err := c.who(*by)
	if err != nil {
		return err
	}
	store := inbox.NewStore(c.schema)
	d := decision[int64]{will: "never handles", did: "discarded"}
	return c.decideEach(ctx, ids, confirmed, d, func(conn *pgx.Conn, l *dlq.Letter) error {
		return store.Discard(ctx, conn, l.ID, name)
	})
}

// decideEach decides on dead letters one at a time. One that cannot be changed,
// which its error says, does not keep the others from it.
func (c *call) decideEach(ctx context.Context, ids []int64, confirmed *confirmation, d decision[int64], do func(conn *pgx.Conn, l *dlq.Letter) error) error {
	d.why = make(map[int64]string)
	return c.decideLetters(ctx, ids, confirmed, d, func(conn *pgx.Conn, store dlq.Store, ids []int64) (changed []int64, err error) {
		for _, id := range ids {
			l, err := store.Load(ctx, conn, id)
			if errors.Is(err, dlq.ErrNotFound) { // purged meanwhile
				d.why[id] = "nothing is left to decide about"
				continue
			}
			if err != nil {
				return changed, err
			}
			err = do(conn, l)
			switch {
			case err == nil:
				changed = append(changed, id)
			case errors.Is(err, inbox.ErrNoDeadLetter) || errors.Is(err, inbox.ErrRedacted):
				if l, err := store.Load(ctx, conn, id); err == nil {
					d.why[id] = whyNot(l)
				}
			default:
				return changed, err
			}
		}
		return changed, nil
	})
}

// whyNot says why a dead letter, as it stands now, could not be changed.
func whyNot(l *dlq.Letter) string {
	by := ""
	if l.DecidedBy != "" {
		by = ", decided by " + l.DecidedBy
	}
	switch {
	case l.State == dlq.Resolved:
		return "a replay was faster" + by
	case l.State == dlq.Replaying:
		return "it is being handled again" + by
	case !l.RedactedAt.IsZero():
		return "its payload was deleted"
	case l.State == dlq.Discarded:
		return fmt.Sprintf("semel dlq replay -reopen %d makes it a new message%s", l.ID, by)
	}
	return "only what is discarded can be reopened"
}
