package dlq

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// defaultLimit is the size of a page.
const defaultLimit = 100

// Filter says which dead letters to list or count. The zero value is all.
type Filter struct {
	// Consumer is a consumer's name. Empty: of every consumer.
	Consumer string

	// State, Reason and Type must be equal where they are not empty.
	State  State
	Reason Reason
	Type   string

	// Owner must be equal where it is not empty.
	Owner string

	// Unowned leaves only those that nobody looks after.
	Unowned bool

	// Limit is the size of a page of [Store.List]. Defaults to 100.
	Limit int

	// Before is the id above the page of [Store.List]: the last id of the page
	// before. 0: the first page.
	Before int64
}

func (f *Filter) check() error {
	if f.Unowned && f.Owner != "" {
		return fmt.Errorf("owner %.64q and unowned exclude each other", f.Owner)
	}
	return nil
}

// List returns a page of dead letters, newest first, without payloads and
// headers. q is a pool, a connection or a transaction.
func (s Store) List(ctx context.Context, q querier, f Filter) ([]Letter, error) {
	limit := f.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	if limit < 0 || f.Before < 0 {
		return nil, fmt.Errorf("list dead letters: limit %d and before %d must not be negative", f.Limit, f.Before)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	rows, err := q.Query(ctx, s.queries().list, f.Consumer, string(f.State), string(f.Reason), f.Type, f.Before, limit, f.Owner, f.Unowned)
	var letters []Letter
	if err == nil {
		letters, err = pgx.CollectRows(rows, decode)
	}
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return letters, nil
}

// Count returns how many dead letters match, however many a page holds.
func (s Store) Count(ctx context.Context, q querier, f Filter) (int64, error) {
	if err := f.check(); err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	rows, err := q.Query(ctx, s.queries().count, f.Consumer, string(f.State), string(f.Reason), f.Type, f.Owner, f.Unowned)
	var n int64
	if err == nil {
		n, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	}
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return n, nil
}

// Consumers returns the names of all consumers, sorted.
func (s Store) Consumers(ctx context.Context, q querier) ([]string, error) {
	rows, err := q.Query(ctx, s.queries().consumers)
	var names []string
	if err == nil {
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		return nil, fmt.Errorf("list consumers: %w", err)
	}
	return names, nil
}
