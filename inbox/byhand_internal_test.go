package inbox

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/pgtest"
)

func TestDuration(t *testing.T) {
	t.Parallel()

	const day = 24 * time.Hour
	for _, tt := range []struct {
		days   int32
		micros int64
		want   time.Duration
	}{
		{0, 0, 0},
		{1, -1, day - time.Microsecond},
		{-400, 5, -400*day + 5*time.Microsecond},
		{106_000, 86_399_999_999, 106_001*day - time.Microsecond},
		{-106_000, -86_399_999_999, -106_001*day + time.Microsecond},
		{106_752, 0, math.MaxInt64}, // 292 years
		{-106_752, 0, -math.MaxInt64},
		{2_912_000, 1, math.MaxInt64}, // the year 9999
		{math.MaxInt32, 0, math.MaxInt64},
		{math.MinInt32, 0, -math.MaxInt64},
	} {
		require.Equal(t, tt.want, duration(pgtype.Interval{Days: tt.days, Microseconds: tt.micros, Valid: true}), tt)
	}
}

// Somebody has put a message off until a year that no duration reaches. The worker
// looks as often as it does when nothing waits.
func TestTake_DueInThousandsOfYears(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	in, err := New(db.Pool, "shipping", func(context.Context, pgx.Tx, *handler.Message) error { return nil }, Config{Schema: db.Schema})
	require.NoError(t, err)
	for _, until := range []string{"9999-12-31", "20000-01-01", "294276-12-31", "2500-01-01"} {
		_, err = db.Pool.Exec(t.Context(), `INSERT INTO inbox_messages (consumer_id, message_id, ready_at) VALUES ($1, gen_random_uuid(), $2::text::timestamptz)`, in.consumerID, until)
		require.NoError(t, err)

		taken, due, err := newWorker(in).take(t.Context(), 10)
		require.NoError(t, err)
		require.Empty(t, taken)
		require.Equal(t, pollAtRest, due, until)
		_, err = db.Pool.Exec(t.Context(), `DELETE FROM inbox_messages`)
		require.NoError(t, err)
	}
}
