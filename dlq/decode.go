package dlq

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/msgrow"
)

// decode reads a row of queries/load.sql or queries/list.sql and undoes what
// [values] had to escape.
func decode(row pgx.CollectableRow) (Letter, error) {
	var (
		l                                                      Letter
		message                                                msgrow.Row
		messageID                                              pgtype.UUID
		outcome                                                pgtype.Int2
		firstFailed, lastFailed, created, resolved, redactedAt pgtype.Timestamptz
	)
	own := []any{
		&l.ID, &l.Consumer, &l.State, &l.Owner, &l.DecidedBy, &l.Count, &created, &resolved, &redactedAt,
		&l.ConsumerID, &messageID, &l.Fingerprint, &l.Reason, &l.Attempts, &firstFailed, &lastFailed, (*msgrow.Names)(&l.Errors), &outcome,
	}
	if err := row.Scan(append(own, message.Targets()...)...); err != nil {
		return Letter{}, err
	}
	payload := message.Payload()
	l.KeyID, l.Encoded = payload.KeyID, payload.Encoded && payload.Bytes != nil
	l.MessageID, l.Message, l.Altered = messageID.Bytes, message.Message(), message.Altered()
	l.Outcome = handler.Outcome(outcome.Int16)
	l.FirstFailedAt, l.LastFailedAt = msgrow.UTC(firstFailed), msgrow.UTC(lastFailed)
	l.CreatedAt, l.ResolvedAt, l.RedactedAt = msgrow.UTC(created), msgrow.UTC(resolved), msgrow.UTC(redactedAt)
	if redactedAt.Valid && l.RedactedAt.IsZero() { // by hand: a time that is none, and still it is redacted
		l.RedactedAt = time.Unix(0, 0).UTC()
	}
	return l, nil
}
