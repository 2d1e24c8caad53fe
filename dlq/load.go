package dlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/msgrow"
)

// ErrNotFound is returned by [Store.Load] when there is no such dead letter.
var ErrNotFound = errors.New("no such dead letter")

// Load returns a dead letter with its message as it came. q is a pool, a
// connection or a transaction. The error wraps [ErrNotFound] when there is none
// with this id, and [handler.ErrCodec] when the store has a codec that cannot
// decode the payload. Without one [Letter.Encoded] says that it should have.
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
	if l.Encoded && s.codec != nil {
		stored := msgrow.Payload{Bytes: l.Message.Payload, KeyID: l.KeyID, Encoded: true}
		if l.Message.Payload, err = stored.Decode(ctx, s.codec); err != nil {
			return nil, fmt.Errorf("load dead letter %d: %w", id, err)
		}
		l.Encoded = false
	}
	return &l, nil
}
