package dlq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// MaxOwnerBytes bounds the name of an owner.
const MaxOwnerBytes = 255

// ErrBadOwner is returned by [CheckOwner] and [Store.Assign] for a name that is
// none.
var ErrBadOwner = errors.New("impossible owner")

// CheckOwner reports whether name can be that of an owner: text without control
// characters and without white space at its ends, of at most [MaxOwnerBytes].
// Empty is nobody, and may be.
func CheckOwner(name string) error {
	switch {
	case len(name) > MaxOwnerBytes:
		return fmt.Errorf("%w %.80q: %d bytes, at most %d are allowed", ErrBadOwner, name, len(name), MaxOwnerBytes)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%w %q: it must be text without control characters", ErrBadOwner, name)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("%w %q: it must not begin or end with white space", ErrBadOwner, name)
	}
	return nil
}

// Assigned says what became of each letter of [Store.Assign], in the order given.
type Assigned struct {
	// Changed are those that have the owner now.
	Changed []int64

	// Closed are those that are resolved or discarded: nobody need look after
	// them, and they keep the owner they had.
	Closed []int64

	// Missing are ids of no dead letter.
	Missing []int64
}

// Assign says who looks after dead letters; the empty owner is nobody. A letter
// must be open or being replayed. It keeps its owner when the message dies again.
//
// With an error Assigned says how far it came. q is a pool, a connection or a
// transaction.
func (s Store) Assign(ctx context.Context, q querier, owner string, ids ...int64) (Assigned, error) {
	var a Assigned
	if err := CheckOwner(owner); err != nil {
		return a, fmt.Errorf("assign dead letters: %w", err)
	}
	for _, id := range ids { // one at a time: nobody waits for two of its rows
		var assigned, exists bool
		rows, err := q.Query(ctx, s.queries().assign, id, owner)
		if err == nil {
			_, err = pgx.ForEachRow(rows, []any{&assigned, &exists}, func() error { return nil })
		}
		switch {
		case err != nil:
			return a, fmt.Errorf("assign dead letter %d: %w", id, err)
		case assigned:
			a.Changed = append(a.Changed, id)
		case exists:
			a.Closed = append(a.Closed, id)
		default:
			a.Missing = append(a.Missing, id)
		}
	}
	return a, nil
}
