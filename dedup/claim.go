package dedup

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Claim claims message id for consumer in the default schema, see [Store.Claim].
func Claim(ctx context.Context, tx pgx.Tx, consumer, id string) (claimed bool, err error) {
	return Store{}.Claim(ctx, tx, consumer, id)
}

// ClaimSQL is [Claim] for database/sql, see [Store.ClaimSQL].
func ClaimSQL(ctx context.Context, tx *sql.Tx, consumer, id string) (claimed bool, err error) {
	return Store{}.ClaimSQL(ctx, tx, consumer, id)
}

// Claim records in tx that consumer handles message id. True: tx owns the
// message; do its work in tx and commit. False: its effect is committed
// already; do nothing.
//
// A copy that another transaction holds is waited for, as long as tx's
// lock_timeout allows. Claim changes no setting of tx, compares no payload and
// needs no registered consumer. An unusable id or consumer name is refused
// with [ErrBadID] or [ErrBadConsumer] before anything is sent.
func (s Store) Claim(ctx context.Context, tx pgx.Tx, consumer, id string) (claimed bool, err error) {
	if err := checkClaim(consumer, id); err != nil {
		return false, err
	}
	stored := MessageID(id)
	tag, err := tx.Exec(ctx, s.queries().claim, ConsumerID(consumer), stored, Text(id, stored))
	if err != nil {
		return false, fmt.Errorf("claim message %q for consumer %q: %w", id, consumer, err)
	}
	return claimWon(tag), nil
}

// ClaimSQL is [Store.Claim] in a transaction of database/sql, with any
// PostgreSQL driver.
func (s Store) ClaimSQL(ctx context.Context, tx *sql.Tx, consumer, id string) (claimed bool, err error) {
	if err := checkClaim(consumer, id); err != nil {
		return false, err
	}
	stored := MessageID(id)
	text := Text(id, stored)
	res, err := tx.ExecContext(ctx, s.queries().claim, ConsumerID(consumer), stored.String(), sql.NullString{String: text.String, Valid: text.Valid})
	if err != nil {
		return false, fmt.Errorf("claim message %q for consumer %q: %w", id, consumer, err)
	}
	rows, err := res.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("claim message %q for consumer %q: read the row count: %w", id, consumer, err)
	}
	return rows == 1, nil
}

func checkClaim(consumer, id string) error {
	if err := CheckConsumer(consumer); err != nil {
		return fmt.Errorf("claim message for consumer %.64q: %w", consumer, err)
	}
	if err := CheckID(id); err != nil {
		return fmt.Errorf("claim message for consumer %q: %w", consumer, err)
	}
	return nil
}

// Text is what stands in message_text for people: id where stored is a hash of
// it, NULL where stored says it already.
func Text(id string, stored ID) pgtype.Text {
	return pgtype.Text{String: id, Valid: stored[6]>>4 == 8}
}

// milliseconds is d as PostgreSQL's settings take it, rounded up: 0 would
// switch the limit off.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(int64((d+time.Millisecond-1)/time.Millisecond), 1), 10)
}
