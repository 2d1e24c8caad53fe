package dlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrNotFound is returned by [Store.Load] when there is no such dead letter.
var ErrNotFound = errors.New("no such dead letter")

// Load returns a dead letter with its message as it came. q is a pool, a
// connection or a transaction. The error wraps [ErrNotFound] when there is none
// with this id.
func (s Store) Load(ctx context.Context, q querier, id int64) (*Letter, error) {
	rows, err := q.Query(ctx, s.queries().load, id)
	if err != nil {
		return nil, fmt.Errorf("load dead letter %d: %w", id, err)
	}
	l, err := pgx.CollectExactlyOneRow(rows, decode)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("load dead letter %d: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("load dead letter %d: %w", id, err)
	}
	return &l, nil
}
