package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/handler"
)

// rowBytes measures what a message leaves behind: heap, index and all else of
// processed_messages, as it is after the writing, with no maintenance command.
func (b *bench) rowBytes(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	nothing := func(context.Context, pgx.Tx, *handler.Message) error { return nil }
	in, err := db.inbox(db.pool, "bench", nothing, nil)
	if err != nil {
		return result{}, err
	}

	began := time.Now()
	handle := expect(handler.Processed, in.Process)
	group, groupCtx := errgroup.WithContext(ctx)
	for worker := range workers {
		group.Go(func() error {
			for n := worker; n < b.rows; n += workers {
				if err := handle(groupCtx, newMessage()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return result{}, err
	}
	took := time.Since(began)

	var rows int
	var heap, all float64
	err = db.pool.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM processed_messages),
		       pg_relation_size('processed_messages')::float8,
		       pg_total_relation_size('processed_messages')::float8`).Scan(&rows, &heap, &all)
	if err != nil {
		return result{}, fmt.Errorf("read the table's size: %w", err)
	}
	if rows != b.rows {
		return result{}, fmt.Errorf("%d rows were written, the table has %d", b.rows, rows)
	}
	n := float64(rows)
	return result{
		value: all / n, digits: 1,
		details: []string{
			fmt.Sprintf("%d rows: heap %.1f, index and the rest %.1f bytes each", rows, heap/n, (all-heap)/n),
			fmt.Sprintf("[%.0f/s by %d workers]", n/took.Seconds(), workers),
		},
	}, nil
}
