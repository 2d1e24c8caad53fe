package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/msgrow"
)

// ErrNotFound is returned by [Store.Load] when there is no such event.
var ErrNotFound = errors.New("no such event")

// defaultLimit is the size of a list.
const defaultLimit = 100

// Filter says which events to list. The zero value is all.
type Filter struct {
	// State is where they stand. Empty: anywhere.
	State State

	// AggregateType and AggregateID must be equal where they are not empty.
	AggregateType string
	AggregateID   string

	// Older leaves out what was written less long ago, by the database's clock.
	Older time.Duration

	// Limit is how many to list at most. Defaults to 100.
	Limit int
}

// List returns events without payloads and headers. What is still to be
// published comes oldest first: what everything behind it waits for. Else the
// newest ids come first, which are the newest events unless writers make ids of
// their own. q is a pool, a connection or a transaction.
//
// What is pending, waiting or in quarantine is found quickly, however many
// published events are kept. An aggregate is looked for among all of a state:
// for published ones that takes a scan.
func (s Store) List(ctx context.Context, q querier, f Filter) ([]Record, error) {
	limit := f.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	if limit < 0 || f.Older < 0 {
		return nil, fmt.Errorf("list events: limit %d and age %s must not be negative", f.Limit, f.Older)
	}
	if states := [...]State{"", StatePending, StateWaiting, StateQuarantined, StatePublished, StateDiscarded}; !slices.Contains(states[:], f.State) {
		return nil, fmt.Errorf("list events: there is no state %q, but: %q", f.State, states[1:])
	}
	args := []any{f.AggregateType, f.AggregateID, f.Older, limit}
	sql := s.queries().list
	switch f.State {
	case StatePending:
		sql = s.queries().listPending
	case StateWaiting, StateQuarantined:
		sql = s.queries().listHeld
		args = append(args, f.State == StateQuarantined)
	default:
		args = append(args, string(f.State))
	}
	rows, err := q.Query(ctx, sql, args...)
	var records []Record
	if err == nil {
		records, err = pgx.CollectRows(rows, decodeRecord)
	}
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	return records, nil
}

// Load returns an event with its payload and headers. q is a pool, a connection
// or a transaction. The error wraps [ErrNotFound] when there is none with this id,
// and [handler.ErrCodec] when the store has a codec that cannot decode the payload.
// Without one [Record.Encoded] says that it should have.
func (s Store) Load(ctx context.Context, q querier, id string) (*Record, error) {
	parsed, err := parseID(id)
	if err != nil {
		return nil, fmt.Errorf("load event %.64q: %w", id, err)
	}
	rows, err := q.Query(ctx, s.queries().loadRecord, parsed)
	var r Record
	if err == nil {
		r, err = pgx.CollectExactlyOneRow(rows, decodeRecord)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err == nil && r.Encoded && s.codec != nil {
		stored := msgrow.Payload{Bytes: r.Payload, KeyID: r.KeyID, Encoded: true}
		r.Payload, err = stored.Decode(ctx, s.codec)
		r.Encoded = false
	}
	if err != nil {
		return nil, fmt.Errorf("load event %s: %w", parsed, err)
	}
	return &r, nil
}

// parseID reads an event's id. What is none is nobody's.
func parseID(id string) (uuid.UUID, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return uuid.Nil, fmt.Errorf("%w: an id is a UUID", ErrNotFound)
	}
	return parsed, nil
}
