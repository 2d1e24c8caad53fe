package dlq

import (
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/msgrow"
)

// values returns what queries/add.sql stores of l, with this payload. What has to
// be altered is noted in the last one; [decode] undoes it where it can.
func values(l *Letter, payload msgrow.Payload) []any {
	var a msgrow.Alterations
	own := []any{
		l.ConsumerID,
		pgtype.UUID{Bytes: l.MessageID, Valid: true},
		l.Fingerprint, string(l.Reason), l.Attempts,
		a.Time("first_failed_at", l.FirstFailedAt), a.Time("last_failed_at", l.LastFailedAt), chainValue(&a, l.Errors),
	}
	return append(append(own, a.Values(l.Message, payload)...), l.Owner)
}

// chainValue stores a chain of errors, which must not be NULL, within its bounds.
func chainValue(a *msgrow.Alterations, errs []string) []string {
	kept, wasCut := bound(errs)
	if wasCut {
		a.Cut("errors")
	}
	return a.Texts("errors", append([]string{}, kept...))
}
