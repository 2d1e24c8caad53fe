package purging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/purging"
)

// table is what a loop works on: a turn that somebody else may have, and rows.
type table struct {
	log    bytes.Buffer
	looks  int
	turns  []time.Duration // how long after the start a purge began
	said   []time.Duration // how long after the start one said that it goes on
	last   time.Time
	answer func() error                              // of Turn; nil: yes
	purge  func(func(int64, float64)) (int64, error) // nil: deletes one row
}

// run runs the loop for a while, in a bubble of synctest.
func (b *table) run(t *testing.T, while time.Duration) {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	purging.Loop{
		Rhythm: purging.Usual(),
		Turn: func(_ context.Context, every time.Duration) (bool, error) {
			if every == 0 {
				b.said = append(b.said, time.Since(start))
				b.last = time.Now()
				return true, nil
			}
			b.looks++
			if b.answer != nil {
				if err := b.answer(); err != nil {
					return false, err
				}
			}
			if time.Since(b.last) < every {
				return false, nil
			}
			b.last = time.Now()
			b.turns = append(b.turns, time.Since(start))
			return true, nil
		},
		Purge: func(_ context.Context, goesOn func(int64, float64)) (int64, error) {
			if b.purge == nil {
				return 1, nil
			}
			return b.purge(goesOn)
		},
		Logger: slog.New(slog.NewTextHandler(&b.log, nil)),
	}.Run(ctx)
	require.Error(t, ctx.Err(), "it runs until its context ends")
	require.Equal(t, while, time.Since(start), "and ends with it")
}

func (b *table) logged(text string) int { return strings.Count(b.log.String(), text) }

// It looks often and purges when it is time, the first time some while after it
// began.
func TestLoop(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := &table{}
		b.run(t, 20*time.Hour)

		require.GreaterOrEqual(t, b.looks, 20*3-1, "at least once in 20 minutes")
		require.Positive(t, b.turns[0])
		require.LessOrEqual(t, b.turns[0], 20*time.Minute)
		require.Len(t, b.turns, 4)
		for i, at := range b.turns[1:] {
			require.GreaterOrEqual(t, at-b.turns[i], 6*time.Hour)
			require.LessOrEqual(t, at-b.turns[i], 6*time.Hour+20*time.Minute)
		}
		require.Equal(t, 4, b.logged("old rows are purged"))
		require.Zero(t, b.logged("WARN"))
	})
}

// Programs that start at one moment do not look at one moment.
func TestLoop_FirstLookIsRandom(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		first := map[time.Duration]bool{}
		for range 20 {
			b := &table{}
			b.run(t, time.Hour)
			first[b.turns[0]] = true
		}
		require.Greater(t, len(first), 15)
	})
}

// One that is started again every quarter of an hour purges as often as one that runs.
func TestLoop_Restarts(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := &table{}
		for range 100 {
			b.run(t, 15*time.Minute)
		}
		require.GreaterOrEqual(t, len(b.turns), 3)
		require.LessOrEqual(t, len(b.turns), 5)
	})
}

// What goes wrong is said once until it is right again, and tried again.
func TestLoop_Fails(t *testing.T) {
	t.Parallel()

	forbidden, raced := &pgconn.PgError{Code: "42501"}, &pgconn.PgError{Code: "40001"}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{name: "Away", err: errors.New("connection refused"), want: "it is tried again later"},
		{name: "Forbidden", err: forbidden, want: "this role may not"},
	}
	for _, tt := range tests {
		t.Run(tt.name+"Turn", func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				b := &table{}
				b.answer = func() error {
					if time.Since(began) < 3*time.Hour {
						return fmt.Errorf("take the turn: %w", tt.err)
					}
					return nil
				}
				b.run(t, 5*time.Hour)
				require.Equal(t, 1, b.logged("WARN"))
				require.Equal(t, 1, b.logged(tt.want))
				require.Len(t, b.turns, 1)
			})
		})
		t.Run(tt.name+"Purge", func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				b := &table{}
				b.purge = func(func(int64, float64)) (int64, error) {
					if time.Since(began) < 12*time.Hour || time.Since(began) > 24*time.Hour {
						return 0, fmt.Errorf("purge: %w", tt.err)
					}
					return 1, nil
				}
				b.run(t, 48*time.Hour)
				require.Equal(t, 2, b.logged(tt.want), "once, and again after it was right")
				require.Equal(t, 2, b.logged("WARN"))
				require.GreaterOrEqual(t, len(b.turns), 7)
			})
		})
	}

	synctest.Test(t, func(t *testing.T) { // another one has just taken the turn
		b := &table{answer: func() error { return raced }}
		b.run(t, 5*time.Hour)
		require.Empty(t, b.log.String())
	})
}

// A purge that takes longer than a turn says so, and no other begins beside it.
func TestLoop_GoesOn(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := &table{}
		b.purge = func(goesOn func(int64, float64)) (int64, error) {
			for range 8 * 60 {
				time.Sleep(time.Minute) // the bubble's clock
				goesOn(1, 0.5)
				require.Less(t, time.Since(b.last), 2*time.Hour)
			}
			return 1, nil
		}
		b.run(t, 10*time.Hour)
		require.Len(t, b.turns, 1)
		require.GreaterOrEqual(t, len(b.said), 5)
		require.LessOrEqual(t, len(b.said), 6)
	})
}
