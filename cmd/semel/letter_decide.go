package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dlq"
)

func dlqAssign(ctx context.Context, c *call) error {
	c.needsDatabase()
	owner := c.flags.String("to", "", "`name` of who looks after them; \"\" is nobody")
	confirmed := c.confirmFlags("dead letters")
	ids, err := c.parseLetterIDs()
	if err != nil {
		return err
	}
	given := false
	c.flags.Visit(func(f *flag.Flag) { given = given || f.Name == "to" })
	if !given {
		return c.usage("say with -to who looks after them")
	}
	if err := dlq.CheckOwner(*owner); err != nil {
		return c.usage("-to: %s", err)
	}
	d := decision[int64]{will: fmt.Sprintf("assigns to %q", *owner), did: fmt.Sprintf("assigned to %q", *owner), unchanged: "nobody need look after it"}
	if *owner == "" {
		d.will, d.did = "assigns to nobody", "assigned to nobody"
	}
	return c.decideLetters(ctx, ids, confirmed, d, func(conn *pgx.Conn, store dlq.Store, ids []int64) ([]int64, error) {
		assigned, err := store.Assign(ctx, conn, *owner, ids...)
		return assigned.Changed, err
	})
}

// parseLetterIDs reads a command line with ids of dead letters, each counts once.
func (c *call) parseLetterIDs() (ids []int64, err error) {
	arguments, err := c.parse()
	if err != nil {
		return nil, err
	}
	if len(arguments) == 0 {
		return nil, c.usage("%s needs the ids of dead letters, see \"semel dlq list\"", c.path)
	}
	return c.letterIDs(arguments)
}

func (c *call) letterIDs(arguments []string) (ids []int64, err error) {
	for _, argument := range arguments {
		id, err := c.letterID(argument)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (c *call) letterID(argument string) (int64, error) {
	id, err := strconv.ParseInt(argument, 10, 64)
	if err != nil || id < 1 {
		return 0, c.usage("%q is no id of a dead letter: it is a number, see \"semel dlq list\"", masked(argument))
	}
	return id, nil
}

// decideLetters shows the letters of these ids, and with -yes decides on them.
// One that does not exist stops it before anything is done.
func (c *call) decideLetters(ctx context.Context, ids []int64, confirmed *confirmation, d decision[int64], do func(conn *pgx.Conn, store dlq.Store, ids []int64) ([]int64, error)) error {
	return c.withLetters(ctx, func(conn *pgx.Conn, store dlq.Store) error {
		var letters []dlq.Letter
		for _, id := range ids {
			l, err := store.Load(ctx, conn, id)
			if err != nil {
				return err
			}
			l.Message.Payload, l.Message.Headers = nil, nil // many could be large
			letters = append(letters, *l)
			d.objects = append(d.objects, summary(l))
		}
		d.things, d.chosen = "dead letters", ids
		d.print = func() error { return c.printLetters(letters) }
		d.do = func(ids []int64) ([]int64, error) { return do(conn, store, ids) }
		d.state = func(id int64) (string, error) {
			l, err := store.Load(ctx, conn, id)
			if errors.Is(err, dlq.ErrNotFound) {
				return gone, nil
			}
			if err != nil {
				return "", err
			}
			return string(l.State), nil
		}
		return decide(c, confirmed, d)
	})
}
