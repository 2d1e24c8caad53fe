package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/examples/internal/edifact"
	"github.com/semel-go/semel/schema"
)

//go:embed tables.sql
var tablesSQL string

//go:embed count.sql
var countSQL string

// came is what came in, from the input alone.
type came struct {
	files    int
	distinct int      // interchanges; the same bytes are the same one
	orders   []string // of those that are in order
}

// countInput reads the input with the eyes of the intake.
func countInput(ctx context.Context, pool *pgxpool.Pool, files []file, lenient bool) (c came, err error) {
	rows, err := pool.Query(ctx, `SELECT id FROM partners`)
	if err != nil {
		return c, fmt.Errorf("look who the partners are: %w", err)
	}
	partners, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return c, fmt.Errorf("look who the partners are: %w", err)
	}
	seen := make(map[[sha256.Size]byte]bool)
	i := intake{parser: edifact.Parser{Lenient: lenient, MaxBytes: maxFile}}
	for _, f := range files {
		seen[sha256.Sum256(f.data)] = true
		in, orders, err := i.read(f.data)
		if err != nil || !slices.Contains(partners, in.Sender) {
			continue
		}
		for _, o := range orders {
			c.orders = append(c.orders, o.ID)
		}
	}
	slices.Sort(c.orders)
	c.orders = slices.Compact(c.orders)
	c.files, c.distinct = len(files), len(seen)
	return c, nil
}

// result is the sum of a run.
type result struct {
	interchanges int
	accepted, refused, orders, erp, warehouse, notified,
	lost, doubled int64

	others int64 // dead letters of the consumers, for people
}

// countOrders reads the truth from the tables: no counter of a process, which may be
// dead, is trusted.
func countOrders(ctx context.Context, pool *pgxpool.Pool, schemaName string, c came) (result, error) {
	r := result{interchanges: c.distinct}
	err := pool.QueryRow(ctx, schema.Qualify(countSQL, schemaName), c.distinct, c.orders, intakeName).
		Scan(&r.accepted, &r.refused, &r.orders, &r.erp, &r.warehouse, &r.notified, &r.lost, &r.doubled, &r.others)
	if err != nil {
		return r, fmt.Errorf("count what became of the orders: %w", err)
	}
	return r, nil
}

// OK reports that every interchange was accepted or is in front of a person, and
// every order was done once by everybody.
func (r result) OK() bool { return r.lost == 0 && r.doubled == 0 }

func (r result) String() string {
	return fmt.Sprintf("RESULT interchanges=%d accepted=%d refused=%d orders=%d erp=%d warehouse=%d notified=%d lost=%d doubled=%d",
		r.interchanges, r.accepted, r.refused, r.orders, r.erp, r.warehouse, r.notified, r.lost, r.doubled)
}
