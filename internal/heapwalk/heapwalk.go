// Package heapwalk deletes old rows of a large table in short transactions. It
// walks the table block by block: no index is needed, nothing is read twice,
// and no lock is held for long.
package heapwalk

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

const (
	firstBlocks = 128  // in the first step
	maxBlocks   = 4096 // in any: 32 MB
	maxRest     = time.Second
)

// Step deletes at most limit rows that lie from from on and before to, and
// commits. It returns how many it found, and how many of them it deleted: others
// may have been faster.
type Step func(ctx context.Context, from, to pgtype.TID, limit int) (found, deleted int64, err error)

// Progress is told after each step how many rows are deleted so far, and which
// part of the table (0 to 1) is done.
type Progress func(deleted int64, part float64)

// Walk deletes step by step from the first blocks of a table, batch rows at
// once at most, and returns how many are gone, also when it ends with an error.
// Between two steps it rests twice as long as a step took, so that it takes at
// most a third of what it could.
func Walk(ctx context.Context, blocks int64, batch int, step Step, progress Progress) (deleted int64, err error) {
	size := int64(firstBlocks)
	for at := int64(0); at < blocks; {
		end := min(at+size, blocks)
		began := time.Now()
		found, n, err := step(ctx, tid(at), tid(end), batch)
		if err != nil {
			return deleted, err
		}
		deleted += n
		full := found >= int64(batch) // there may be more in these blocks
		if !full {
			at = end
		}
		switch {
		case full:
			size = max(size/2, 1)
		case found < int64(batch)/2:
			size = min(size*2, maxBlocks)
		}
		if progress != nil {
			progress(deleted, float64(at)/float64(blocks))
		}
		if at < blocks {
			if err := rest(ctx, min(2*time.Since(began), maxRest)); err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func tid(block int64) pgtype.TID {
	return pgtype.TID{BlockNumber: uint32(block), Valid: true} //nolint:gosec // PostgreSQL has no more blocks in a table
}
