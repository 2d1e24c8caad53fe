package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// tellEvery is how often a long purge says how far it is.
const tellEvery = 10 * time.Second

// purge is the command line that all purges have.
type purge struct {
	older       time.Duration
	redactAfter time.Duration // only dead letters have a flag for it
	batch       int
	yes         bool
	asJSON      bool
}

// tally is how many rows something was done to.
type tally struct {
	done string // "deleted"
	n    int64
}

func (c *call) purgeFlags() *purge {
	p := &purge{}
	c.needsDatabase()
	c.flags.Var((*age)(&p.older), "older", "delete what is older than this `age`: 36h, 14d")
	c.flags.IntVar(&p.batch, "batch", 10_000, "how many rows one transaction changes at most")
	c.flags.BoolVar(&p.yes, "yes", false, "do it; without it only say what would be done")
	c.flags.BoolVar(&p.asJSON, "json", false, "print JSON")
	return p
}

func (c *call) parsePurge(p *purge) error {
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	if p.older == 0 && p.redactAfter == 0 {
		return c.usage("say with -older what is old: 36h, 14d")
	}
	if p.batch < 1 {
		return c.usage("-batch must be at least 1")
	}
	return nil
}

func outboxPurge(ctx context.Context, c *call) error {
	p := c.purgeFlags()
	archive := c.archiveFlags()
	if err := c.parsePurge(p); err != nil {
		return err
	}
	cfg := outbox.PurgeConfig{Batch: p.batch, Archive: archive.store(), ArchiveRetention: time.Duration(archive.retain)}
	will := "deletes events that were published or discarded more than %s ago\n"
	if cfg.Archive != nil {
		will = "archives events that were published or discarded more than %s ago, reads them back, and deletes them here\n"
	}
	return c.withOutbox(ctx, func(conn *pgx.Conn, store outbox.Store) error {
		return c.purge(p, fmt.Sprintf(will, ageText(p.older)), func(progress func(int64, float64)) ([]tally, error) {
			cfg.Progress = progress
			deleted, err := store.Purge(ctx, conn, p.older, cfg)
			return []tally{{"deleted", deleted}}, err
		})
	})
}

func inboxPurge(ctx context.Context, c *call) error {
	p := c.purgeFlags()
	consumer := c.flags.String("consumer", "", "only of the consumer of this `name`")
	if err := c.parsePurge(p); err != nil {
		return err
	}
	if p.older < dedup.MinRetention {
		return c.usage("-older %s: what was handled is kept for at least %s: copies of it may be on their way", ageText(p.older), ageText(dedup.MinRetention))
	}
	return c.withDatabase(ctx, func(conn *pgx.Conn) error {
		if err := schema.Check(ctx, conn, c.schema); err != nil {
			return err
		}
		what := "messages that were handled"
		if *consumer != "" {
			names, err := dlq.NewStore(c.schema).Consumers(ctx, conn)
			if err != nil {
				return err
			}
			if !slices.Contains(names, *consumer) {
				return noConsumer(*consumer, names)
			}
			what = fmt.Sprintf("messages that consumer %q handled", *consumer)
		}
		will := fmt.Sprintf("deletes the records of %s more than %s ago\n", what, ageText(p.older))
		return c.purge(p, will, func(progress func(int64, float64)) ([]tally, error) {
			store, cfg := dedup.NewStore(c.schema), dedup.PurgeConfig{Consumer: *consumer, Batch: p.batch, Progress: progress}
			deleted, err := store.Purge(ctx, conn, p.older, cfg)
			if err != nil {
				return nil, err
			}
			calls, err := store.PurgeCalls(ctx, conn, p.older, cfg) // of messages that have no row
			tallies := []tally{{"deleted", deleted}}
			if calls > 0 {
				tallies = append(tallies, tally{"calls deleted", calls})
			}
			return tallies, err
		})
	})
}

// purge says what it will do, and with -yes does it.
func (c *call) purge(p *purge, will string, do func(progress func(int64, float64)) ([]tally, error)) error {
	if !p.asJSON {
		fmt.Fprint(c.stdout, will)
	}
	if !p.yes {
		return errNotConfirmed
	}
	told := time.Now()
	tallies, err := do(func(changed int64, part float64) {
		if time.Since(told) >= tellEvery {
			told = time.Now()
			fmt.Fprintf(c.stderr, "%d rows changed, %.0f %% of the table done\n", changed, 100*part)
		}
	})
	if err != nil {
		return err
	}
	out := object{}
	for _, t := range tallies {
		out[strings.ReplaceAll(t.done, " ", "_")] = t.n
		if !p.asJSON {
			fmt.Fprintf(c.stdout, "%d %s\n", t.n, t.done)
		}
	}
	if p.asJSON {
		return writeJSON(c.stdout, out)
	}
	return nil
}
