package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/internal/provider"
	"github.com/semel-go/semel/schema"
)

//go:embed tables.sql
var tablesSQL string

//go:embed count.sql
var countSQL string

// counts is what tables and ledger files tell of the orders.
type counts struct {
	orders, invoices, missing, lost, doubled, dead int64

	notes, repeated int64 // for people
}

// countOrders reads the truth from the tables and from what the providers have
// written down: no counter of a process, which may be dead, is trusted.
func countOrders(ctx context.Context, pool *pgxpool.Pool, schemaName string, orders []order) (c counts, err error) {
	var ids, fail []string
	for _, o := range orders {
		ids = append(ids, o.ID)
		if o.Card == declined {
			fail = append(fail, o.ID)
		}
	}
	err = pool.QueryRow(ctx, schema.Qualify(countSQL, schemaName), ids, fail).
		Scan(&c.orders, &c.invoices, &c.notes, &c.missing, &c.lost, &c.doubled, &c.dead, &c.repeated)
	if err != nil {
		return c, fmt.Errorf("count what became of the orders: %w", err)
	}
	return c, nil
}

// storeEffects puts what the providers did beside the tables, to be counted with them.
func storeEffects(ctx context.Context, pool *pgxpool.Pool, ledgers map[string][]provider.Entry) error {
	var rows [][]any
	for _, entries := range ledgers {
		for _, e := range entries {
			if e.Kind == provider.Made {
				rows = append(rows, []any{e.Number, e.ID})
			}
		}
	}
	if _, err := pool.CopyFrom(ctx, pgx.Identifier{"provider_effects"}, []string{"number", "id"}, pgx.CopyFromRows(rows)); err != nil {
		return fmt.Errorf("store what the providers did: %w", err)
	}
	return nil
}

// attemptsIn counts the attempts that messages to the providers have spent on an
// outage that began, and that every sender knows, by the database's clock: all since
// then, and before those of a message that has failed as often as opens a breaker and
// never before it. While it lasts all of them wait, so none is gone.
func attemptsIn(ctx context.Context, pool *pgxpool.Pool, schemaName string, began, known time.Time) (n int64, err error) {
	err = pool.QueryRow(ctx, schema.Qualify(`
		SELECT coalesce(sum(attempts), 0)
		FROM (
			SELECT consumer_id, attempts, first_failed_at, last_failed_at FROM semel.inbox_messages
			UNION ALL
			SELECT consumer_id, attempts, first_failed_at, last_failed_at FROM semel.dead_letters
		) AS message
		JOIN semel.consumers AS c ON c.id = message.consumer_id
		WHERE c.name LIKE $4 || '%'
		  AND (last_failed_at > $2 OR first_failed_at > $1 AND attempts >= $3)`, schemaName), began, known, opensAfter, senderPrefix).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("look for attempts that the maintenance cost: %w", err)
	}
	return n, nil
}

// result is the sum of a run.
type result struct {
	counts
	attemptsInOutage int64
}

// OK reports that each order has one invoice or is in front of a person, and that
// the maintenance cost nobody an attempt.
func (r result) OK() bool {
	return r.missing == 0 && r.lost == 0 && r.doubled == 0 && r.attemptsInOutage == 0
}

func (r result) String() string {
	return fmt.Sprintf("RESULT orders=%d invoices=%d missing=%d lost=%d doubled=%d dead=%d attempts_in_outage=%d",
		r.orders, r.invoices, r.missing, r.lost, r.doubled, r.dead, r.attemptsInOutage)
}
