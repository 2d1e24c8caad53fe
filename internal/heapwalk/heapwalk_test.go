package heapwalk_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/heapwalk"
)

// table has so many old rows in each of its blocks.
type table []int64

// step deletes as the database would.
func (b table) step(_ context.Context, from, to pgtype.TID, limit int) (found, deleted int64, err error) {
	for i := from.BlockNumber; i < to.BlockNumber && deleted < int64(limit); i++ {
		n := min(b[i], int64(limit)-deleted)
		b[i] -= n
		deleted += n
	}
	return deleted, deleted, nil
}

func TestWalk(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name      string
		blocks    int
		rows      func(block int) int64
		batch     int
		wantSteps int // at most
	}{
		{name: "Empty", batch: 10},
		{name: "NothingOld", blocks: 100_000, rows: func(int) int64 { return 0 }, batch: 10_000, wantSteps: 32},
		{name: "Dense", blocks: 1000, rows: func(int) int64 { return 70 }, batch: 1000, wantSteps: 200},
		{name: "MoreInABlockThanABatch", blocks: 3, rows: func(int) int64 { return 291 }, batch: 10, wantSteps: 100},
		{name: "OldOnesInFront", blocks: 10_000, rows: func(i int) int64 { return 50 * int64(1-min(i/100, 1)) }, batch: 1000, wantSteps: 25},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			rows, want := make(table, tt.blocks), int64(0)
			for i := range rows {
				rows[i] = tt.rows(i)
				want += rows[i]
			}
			steps, told, part := 0, int64(0), 1.0

			deleted, err := heapwalk.Walk(t.Context(), int64(tt.blocks), tt.batch, func(ctx context.Context, from, to pgtype.TID, limit int) (int64, int64, error) {
				steps++
				require.Less(t, from.BlockNumber, to.BlockNumber)
				require.LessOrEqual(t, int(to.BlockNumber), tt.blocks)
				return rows.step(ctx, from, to, limit)
			}, func(n int64, p float64) { told, part = n, p })

			require.NoError(t, err)
			require.Equal(t, want, deleted)
			require.Equal(t, want, told)
			require.InDelta(t, 1, part, 1e-9)
			require.LessOrEqual(t, steps, tt.wantSteps)
			for _, left := range rows {
				require.Zero(t, left)
			}
		})
	}
}

// What is gone is gone: an error says how much that is.
func TestWalk_Ended(t *testing.T) {
	t.Parallel()

	rows := make(table, 1000)
	for i := range rows {
		rows[i] = 50
	}
	broken := errors.New("connection lost")
	steps := 0
	deleted, err := heapwalk.Walk(t.Context(), 1000, 100, func(ctx context.Context, from, to pgtype.TID, limit int) (int64, int64, error) {
		if steps++; steps > 3 {
			return 0, 0, broken
		}
		return rows.step(ctx, from, to, limit)
	}, nil)
	require.ErrorIs(t, err, broken)
	require.Equal(t, int64(300), deleted)

	ctx, cancel := context.WithCancel(t.Context())
	deleted, err = heapwalk.Walk(ctx, 1000, 100, rows.step, func(int64, float64) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, int64(100), deleted)
}

// What somebody else deletes at the same moment is found, and not deleted: there
// may be more behind it all the same.
func TestWalk_TwoAtOnce(t *testing.T) {
	t.Parallel()

	rows := make(table, 500)
	for i := range rows {
		rows[i] = 50
	}
	first := true
	deleted, err := heapwalk.Walk(t.Context(), 500, 100, func(ctx context.Context, from, to pgtype.TID, limit int) (int64, int64, error) {
		found, n, err := rows.step(ctx, from, to, limit)
		if first { // the other one was faster
			first, n = false, 0
		}
		return found, n, err
	}, nil)
	require.NoError(t, err)
	require.Equal(t, int64(500*50-100), deleted)
	for _, left := range rows {
		require.Zero(t, left)
	}
}
