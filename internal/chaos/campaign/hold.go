//go:build !plant_no_lock

package campaign

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
)

// hold keeps other writers of an aggregate away that has no row to lock.
func hold(ctx context.Context, tx pgx.Tx, kind, id string) error {
	return outbox.Lock(ctx, tx, kind, id)
}
