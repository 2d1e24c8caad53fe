// Package byhand is what a good engineer ships without Semel: the table, the
// transaction and the insert that decides, written with pgx and nothing else.
// It is the floor that the benchmarks measure against, so it does no work that
// such a service would not do, and leaves out none of it.
//
// It compares no payloads, retries nothing, keeps no order and has no dead
// letters.
package byhand

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/handler"
)

// Table is what the consumer needs. The narrowest row and the best key order
// we know of: a slow floor would flatter us.
const Table = `
CREATE TABLE handled (
    handled_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    message_id  uuid        NOT NULL,
    consumer_id int         NOT NULL,
    PRIMARY KEY (consumer_id, message_id)
)`

// Claim is the statement that decides.
const Claim = `INSERT INTO handled (consumer_id, message_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`

// Consumer handles each message once. It is safe for concurrent use.
type Consumer struct {
	Pool *pgxpool.Pool
	ID   int32
	Work handler.Func
}

// Handle works on a message unless that was done before: four round trips, two
// of them for BEGIN and COMMIT.
func (c *Consumer) Handle(ctx context.Context, msg *handler.Message) (fresh bool, err error) {
	tx, err := c.Pool.Begin(ctx)
	if err != nil {
		return false, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // after the commit it does nothing
	tag, err := tx.Exec(ctx, Claim, c.ID, msg.ID)
	if err != nil {
		return false, fmt.Errorf("claim message %q: %w", msg.ID, err)
	}
	if tag.RowsAffected() == 0 {
		return false, nil
	}
	if err := c.Work(ctx, tx, msg); err != nil {
		return false, err
	}
	if err := tx.Commit(ctx); err != nil {
		return false, fmt.Errorf("commit message %q: %w", msg.ID, err)
	}
	return true, nil
}
