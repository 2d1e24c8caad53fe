package calls

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// timeOf is a time of a row; only NULL is the zero time. One that somebody has set by
// hand to what no clock shows is far from all others: the zero time would say that
// nothing was sent.
func timeOf(t pgtype.Timestamptz) time.Time {
	switch {
	case !t.Valid:
		return time.Time{}
	case t.InfinityModifier == pgtype.Infinity:
		return time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
	case t.InfinityModifier == pgtype.NegativeInfinity, t.Time.IsZero():
		return time.Time{}.Add(1)
	}
	return t.Time
}
