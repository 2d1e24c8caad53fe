package main

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// runSearchIndex is the consumer that makes approved merchants findable.
func runSearchIndex(ctx context.Context, c partConfig) error {
	return consume(ctx, c, searchIndex, inbox.Config{}, handler.JSON(index))
}

// index adds a merchant to the index. Done twice, it would be there twice.
func index(ctx context.Context, tx pgx.Tx, e approved, msg *handler.Message) error {
	_, err := tx.Exec(ctx, `INSERT INTO search_index (merchant_id, words, version, message) VALUES ($1, $2, $3, $4)`,
		e.MerchantID, strings.ToLower(e.Name), msg.Version, msg.ID)
	return err
}
