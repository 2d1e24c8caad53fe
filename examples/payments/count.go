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
	handled, superseded, dead, doubled int64
}

// countMessages reads the truth from the tables: no counter of a process, which
// may be dead, is trusted.
func countMessages(ctx context.Context, pool *pgxpool.Pool, schemaName string) (c counts, err error) {
	err = pool.QueryRow(ctx, schema.Qualify(countSQL, schemaName), consumerName).Scan(&c.handled, &c.superseded, &c.dead, &c.doubled)
	if err != nil {
		return c, fmt.Errorf("count what became of the messages: %w", err)
	}
	return c, nil
}

// result is the sum of a run. Produced and distinct come from the input.
type result struct {
	produced, distinct int64
	counts
}

// lost are the messages that are neither handled nor in front of a person.
func (r result) lost() int64 { return r.distinct - r.handled - r.superseded - r.dead }

// ok reports that every message took effect once or is in front of a person.
func (r result) ok() bool { return r.lost() == 0 && r.doubled == 0 }

func (r result) String() string {
	return fmt.Sprintf("RESULT produced=%d distinct=%d handled=%d duplicates=%d dead=%d lost=%d doubled=%d",
		r.produced, r.distinct, r.handled, r.produced-r.distinct, r.dead, r.lost(), r.doubled)
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

// refundsFirst counts the orders that were refunded before they were paid, and
// those of them that stand at zero for it.
func refundsFirst(ctx context.Context, pool *pgxpool.Pool) (n, zero int64, err error) {
	err = pool.QueryRow(ctx, `
		SELECT count(*), count(*) FILTER (WHERE o.status = 'refunded')
		FROM orders AS o
		WHERE o.paid > 0
		  AND (SELECT min(seq) FROM effects AS e WHERE e.order_id = o.id AND e.amount < 0)
		    < (SELECT min(seq) FROM effects AS e WHERE e.order_id = o.id AND e.amount > 0)`).Scan(&n, &zero)
	if err != nil {
		return 0, 0, fmt.Errorf("look for refunds that came first: %w", err)
	}
	return n, zero, nil
}
