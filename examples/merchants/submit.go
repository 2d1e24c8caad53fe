package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// takenEvery is how many merchants there are to one whose payout account
// belongs to another merchant already.
const takenEvery = 10

// submit makes merchants that wait for a reviewer.
func submit(ctx context.Context, pool *pgxpool.Pool, n int) (ids []string, err error) {
	const taken = "DE02120300000000202051"
	if _, err := pool.Exec(ctx, `INSERT INTO payout_accounts (iban, merchant_id) VALUES ($1, 'mer_00000')`, taken); err != nil {
		return nil, fmt.Errorf("submit merchants: %w", err)
	}
	trades, towns := [...]string{"Bakery", "Books", "Bicycles", "Flowers", "Cheese"}, [...]string{"Ulm", "Lyon", "Porto", "Gent", "Graz", "Turku", "Cork"}
	_, err = pool.CopyFrom(ctx, pgx.Identifier{"merchants"}, []string{"id", "name", "iban"}, pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		id := fmt.Sprintf("mer_%05d", i+1)
		ids = append(ids, id)
		iban := fmt.Sprintf("DE00%018d", i+1)
		if i%takenEvery == takenEvery-1 {
			iban = taken
		}
		return []any{id, fmt.Sprintf("%s %s %d", trades[i%len(trades)], towns[i%len(towns)], i+1), iban}, nil
	}))
	if err != nil {
		return nil, fmt.Errorf("submit merchants: %w", err)
	}
	return ids, nil
}
