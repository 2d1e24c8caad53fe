package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/inbox"
)

const (
	// bulkPage is how many letters are read at once to find out their ids.
	bulkPage = 1000

	// bulkShown is how many of them a person sees before and after.
	bulkShown = 20
)

// replayChosen replays the letters that a filter chooses: those that it chooses
// now, whatever dies meanwhile.
func (c *call) replayChosen(ctx context.Context, r *replay) error {
	return c.withLetters(ctx, func(conn *pgx.Conn, store dlq.Store) error {
		if r.filter.Consumer != "" {
			if err := c.checkConsumer(ctx, conn, store, r.filter.Consumer); err != nil {
				return err
			}
		}
		ids, first, err := snapshot(ctx, conn, store, r.filter)
		if err != nil {
			return err
		}
		if len(ids) == 0 && !r.asJSON {
			fmt.Fprintln(c.stdout, "no dead letters")
			return nil
		}
		if !r.asJSON {
			fmt.Fprintf(c.stdout, "handles again %d dead letters, the oldest first, %s:\n", len(ids), &r.rate)
			if err := c.printLetters(first); err != nil {
				return err
			}
			if more := len(ids) - len(first); more > 0 {
				fmt.Fprintf(c.stdout, "and %d more\n", more)
			}
		} else if !r.yes {
			if err := writeJSON(c.stdout, object{"ids": ids}); err != nil {
				return err
			}
		}
		if !r.yes {
			return errNotConfirmed
		}
		done, err := inbox.NewStore(c.schema).ReplayAll(ctx, conn, ids, inbox.ReplayAllConfig{
			By: r.by, Rate: float64(r.rate), MaxFailures: r.stopAfter, Progress: c.bulkProgress(len(ids)),
		})
		return errors.Join(err, c.reportBulk(r, len(ids), done, err))
	})
}

// snapshot is which letters a filter chooses, the oldest first, and the first few
// of them. New ones have higher ids.
func snapshot(ctx context.Context, conn *pgx.Conn, store dlq.Store, f dlq.Filter) (ids []int64, first []dlq.Letter, err error) {
	limit := f.Limit
	f.Limit = bulkPage
	var tail []dlq.Letter
	for {
		page, err := store.List(ctx, conn, f)
		if err != nil {
			return nil, nil, err
		}
		for i := range page {
			ids = append(ids, page[i].ID)
		}
		if tail = append(tail, page...); len(tail) > bulkShown {
			tail = tail[len(tail)-bulkShown:]
		}
		if len(page) < bulkPage {
			break
		}
		f.Before = page[len(page)-1].ID
	}
	slices.Reverse(ids)
	slices.Reverse(tail)
	if limit > 0 && len(ids) > limit {
		ids = ids[:limit]
	}
	return ids, tail[:min(len(tail), len(ids))], nil
}

// bulkProgress tells now and then how far it is.
func (c *call) bulkProgress(n int) func(inbox.Replayed) {
	told := time.Now()
	return func(d inbox.Replayed) {
		if time.Since(told) >= tellEvery {
			told = time.Now()
			fmt.Fprintf(c.stderr, "%d of %d begun: %s\n", len(d.Begun), n, outcome(d))
		}
	}
}

// outcome says what has become of those begun. What had no effect is told where
// there is any.
func outcome(d inbox.Replayed) string {
	text := fmt.Sprintf("%d handled, ", d.Handled)
	if d.Superseded > 0 {
		text += fmt.Sprintf("%d superseded by newer ones, ", d.Superseded)
	}
	if d.Skipped > 0 {
		text += fmt.Sprintf("%d skipped by their handler, ", d.Skipped)
	}
	return text + fmt.Sprintf("%d died again, %d wait", d.DiedAgain, d.Waiting)
}

// reportBulk says what was done, and why the rest was not.
func (c *call) reportBulk(r *replay, n int, d inbox.Replayed, stopped error) error {
	if r.asJSON {
		refused := make([]object, 0, len(d.Refused))
		for _, x := range d.Refused {
			refused = append(refused, object{"id": x.ID, "why": x.Err.Error()})
		}
		out := object{
			"chosen": n, "begun": d.Begun, "refused": refused,
			"handled": d.Handled, "superseded": d.Superseded, "skipped": d.Skipped, "died_again": d.DiedAgain, "waiting": d.Waiting, "stopped": stopped != nil,
		}
		if err := writeJSON(c.stdout, out); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.stdout, "\n%d of %d are handled again: %s\n", len(d.Begun), n, outcome(d))
		for _, x := range d.Refused[:min(len(d.Refused), bulkShown)] {
			fmt.Fprintln(c.stdout, printable(x.Err.Error()))
		}
		if d.Waiting > 0 {
			c.printWaiting(r.filter.Consumer)
		}
	}
	if len(d.Refused) > 0 {
		return fmt.Errorf("%d of %d dead letters were not changed", len(d.Refused), n)
	}
	return nil
}
