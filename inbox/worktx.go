//go:build !plant_record_before_work

package inbox

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// workTx is the transaction in which the handler works: the one that holds the
// claim, and no other.
func workTx(_ context.Context, tx *claimedTx) pgx.Tx { return tx.Tx }
