package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/schema"
)

//go:embed tables.sql
var tablesSQL string

//go:embed count.sql
var countSQL string

// counts is what the database tells about the messages.
type counts struct {
	handled, superseded, dead, doubled, shipped, invoiced int64

	forged int64 // callbacks with a wrong signature that were taken for right
}

// countMessages reads the truth from the tables: no counter of a process, which
// may be dead, is trusted.
func countMessages(ctx context.Context, pool *pgxpool.Pool, schemaName string) (c counts, err error) {
	err = pool.QueryRow(ctx, schema.Qualify(countSQL, schemaName), payments, endpoint+":"+forgedID).
		Scan(&c.handled, &c.superseded, &c.dead, &c.doubled, &c.shipped, &c.invoiced, &c.forged)
	if err != nil {
		return c, fmt.Errorf("count what became of the messages: %w", err)
	}
	return c, nil
}

// result is the sum of a run. Produced and distinct come from the input, refused from
// what the provider was answered.
type result struct {
	produced, distinct, refused int64
	counts
}

// lost are the messages that are neither handled nor in front of a person.
func (r result) lost() int64 { return r.distinct - r.handled - r.superseded - r.dead }

// OK reports that every message took effect once or is in front of a person, and that
// nothing else had any.
func (r result) OK() bool { return r.lost() == 0 && r.doubled == 0 && r.forged == 0 }

func (r result) String() string {
	return fmt.Sprintf("RESULT produced=%d distinct=%d handled=%d duplicates=%d dead=%d lost=%d doubled=%d forged_refused=%d superseded=%d shipped=%d invoiced=%d",
		r.produced, r.distinct, r.handled, r.produced-r.distinct, r.dead, r.lost(), r.doubled,
		r.refused-r.forged, r.superseded, r.shipped, r.invoiced)
}

// deadLetters is one line of the report: those of one reason, and one of them.
type deadLetters struct {
	Reason, Example, Error string
	Count                  int64
}

func listDeadLetters(ctx context.Context, pool *pgxpool.Pool, schemaName string) ([]deadLetters, error) {
	rows, err := pool.Query(ctx, schema.Qualify(`
		SELECT DISTINCT ON (reason)
		       reason, coalesce(nullif(message_text, ''), source, ''), coalesce(errors[1], ''), count(*) OVER (PARTITION BY reason)
		FROM semel.dead_letters
		ORDER BY reason, id`, schemaName))
	if err != nil {
		return nil, fmt.Errorf("list the dead letters: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d deadLetters, err error) {
		err = row.Scan(&d.Reason, &d.Example, &d.Error, &d.Count)
		d.Error = strings.Join(strings.Fields(d.Error), " ")
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("list the dead letters: %w", err)
	}
	return found, nil
}

// refundsFirst counts the orders of which the refund came before the payment, and
// those of them that did not become paid again.
func refundsFirst(ctx context.Context, pool *pgxpool.Pool, schemaName string) (n, refunded int64, err error) {
	err = pool.QueryRow(ctx, schema.Qualify(`
		SELECT count(*), count(*) FILTER (WHERE o.status = 'refunded')
		FROM orders AS o
		WHERE o.refunded > 0
		  AND NOT EXISTS (SELECT FROM effects AS e WHERE e.order_id = o.id AND e.type = 'payment_intent.succeeded')`, schemaName)).Scan(&n, &refunded)
	if err != nil {
		return 0, 0, fmt.Errorf("look for refunds that came first: %w", err)
	}
	return n, refunded, nil
}
