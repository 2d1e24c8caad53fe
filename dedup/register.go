package dedup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrBadConsumer is returned for a consumer name that is empty, only white
// space, over 255 bytes, with a NUL byte, or not UTF-8.
var ErrBadConsumer = errors.New("unusable consumer name")

// ErrConsumerCollision is returned by [Register] when another name has the
// same number. Choose another name: with the taken one, two consumers would
// take each other's messages for duplicates.
var ErrConsumerCollision = errors.New("another consumer has the same number")

// maxRegisterTries is how often a registration is tried that meets others.
const maxRegisterTries = 20

// DB is what [Register] needs of a *pgxpool.Pool, *pgx.Conn or pgx.Tx, and
// [Store.Purge] of the first two.
type DB interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// CheckConsumer returns an error wrapping [ErrBadConsumer] unless name can be
// a consumer's.
func CheckConsumer(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return fmt.Errorf("%w: it is empty", ErrBadConsumer)
	case len(name) > 255:
		return fmt.Errorf("%w: it has %d bytes, at most 255 are allowed", ErrBadConsumer, len(name))
	case strings.IndexByte(name, 0) >= 0 || !utf8.ValidString(name):
		return fmt.Errorf("%w: it must be UTF-8 without NUL bytes", ErrBadConsumer)
	}
	return nil
}

// Register writes a consumer's name down in the default schema, see
// [Store.Register].
func Register(ctx context.Context, db DB, consumer string) error {
	return Store{}.Register(ctx, db, consumer)
}

// Register writes a consumer's name down, for people and for checks, and finds
// out whether another name has the same number ([ErrConsumerCollision]).
// Registering again does nothing. It is safe for concurrent use.
func (s Store) Register(ctx context.Context, db DB, consumer string) error {
	if err := CheckConsumer(consumer); err != nil {
		return fmt.Errorf("register consumer %.64q: %w", consumer, err)
	}
	id := ConsumerID(consumer)
	name, err := s.consumerName(ctx, db, id)
	// Above READ COMMITTED one that registers at the same moment makes the
	// INSERT fail instead of doing nothing; the row is there then.
	for tries := 0; errors.Is(err, pgx.ErrNoRows) && tries < maxRegisterTries; tries++ {
		if _, err = db.Exec(ctx, s.queries().register, id, consumer); err == nil || isSerialization(err) {
			name, err = s.consumerName(ctx, db, id)
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("register consumer %q: %w", consumer, err)
	case name != consumer:
		return fmt.Errorf("register consumer %q: %w: %q has number %d; choose another name", consumer, ErrConsumerCollision, name, id)
	}
	return nil
}

func (s Store) consumerName(ctx context.Context, db DB, id int32) (name string, err error) {
	err = db.QueryRow(ctx, s.queries().consumerName, id).Scan(&name)
	return name, err
}

func isSerialization(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "40001"
}
