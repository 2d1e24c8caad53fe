package dedup

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/handler"
)

// ClaimMany claims messages of one consumer in tx and returns those that nobody
// had claimed. Of copies among them one is claimed. It changes no setting of tx
// and waits for copies that other transactions hold.
func (s Store) ClaimMany(ctx context.Context, tx pgx.Tx, consumerID int32, entries []Entry, outcome handler.Outcome) (map[ID]struct{}, error) {
	ids, fingerprints, texts := make([]pgtype.UUID, len(entries)), make([]pgtype.Int8, len(entries)), make([]pgtype.Text, len(entries))
	for i, e := range entries {
		ids[i], fingerprints[i], texts[i] = pgtype.UUID{Bytes: e.MessageID, Valid: true}, e.Fingerprint, e.Text
	}
	rows, err := tx.Query(ctx, s.queries().claimMany, consumerID, ids, fingerprints, texts, int16(outcome))
	claimed := make(map[ID]struct{}, len(entries))
	if err == nil {
		var id pgtype.UUID
		_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
			claimed[id.Bytes] = struct{}{}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("claim %d messages: %w", len(entries), err)
	}
	return claimed, nil
}

// SeenMany looks at messages that could not be claimed, in the same transaction.
func (s Store) SeenMany(ctx context.Context, tx pgx.Tx, consumerID int32, ids []ID) (map[ID]Seen, error) {
	uuids := make([]pgtype.UUID, len(ids)) // a list of another type has no encoding where the server does not tell of what type it is
	for i, id := range ids {
		uuids[i] = pgtype.UUID{Bytes: id, Valid: true}
	}
	rows, err := tx.Query(ctx, s.queries().seenMany, consumerID, uuids)
	seen := make(map[ID]Seen, len(ids))
	if err == nil {
		var (
			id          pgtype.UUID
			outcome     int16
			fingerprint pgtype.Int8
		)
		_, err = pgx.ForEachRow(rows, []any{&id, &outcome, &fingerprint}, func() error {
			seen[id.Bytes] = Seen{Found: true, Outcome: handler.Outcome(outcome), Fingerprint: fingerprint}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("look at the rows of %d messages: %w", len(ids), err)
	}
	return seen, nil
}
