package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dlq"
)

func dlqPurge(ctx context.Context, c *call) error {
	p := c.purgeFlags()
	c.flags.Var((*age)(&p.redactAfter), "redact-after", "delete payload and header values of what is older than this `age`; the rest stays")
	consumer := c.flags.String("consumer", "", "only of the consumer of this `name`")
	open := c.flags.Bool("open", false, "also what failed that long ago and nobody has decided on")
	if err := c.parsePurge(p); err != nil {
		return err
	}
	if p.older > 0 && p.redactAfter >= p.older {
		return c.usage("-redact-after must be less than -older: after that there is nothing left to redact")
	}
	return c.withLetters(ctx, func(conn *pgx.Conn, store dlq.Store) error {
		which := "dead letters"
		if *consumer != "" {
			if err := c.checkConsumer(ctx, conn, store, *consumer); err != nil {
				return err
			}
			which = fmt.Sprintf("dead letters of consumer %q", *consumer)
		}
		closed := "were resolved or discarded"
		if *open {
			closed += ", or failed last and are OPEN STILL,"
		}
		var will strings.Builder
		if p.older > 0 {
			fmt.Fprintf(&will, "deletes %s that %s more than %s ago\n", which, closed, ageText(p.older))
		}
		if p.redactAfter > 0 {
			fmt.Fprintf(&will, "deletes payload and header values of %s that %s more than %s ago\n", which, closed, ageText(p.redactAfter))
		}
		return c.purge(p, will.String(), func(progress func(int64, float64)) ([]tally, error) {
			done, err := store.Purge(ctx, conn, dlq.PurgeConfig{
				Consumer: *consumer, MaxAge: p.older, RedactAfter: p.redactAfter, Open: *open, Batch: p.batch, Progress: progress,
			})
			return []tally{{"deleted", done.Deleted}, {"redacted", done.Redacted}}, err
		})
	})
}
