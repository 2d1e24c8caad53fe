package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/msgrow"
)

// maxCounted bounds what a status costs when very much is pending.
const maxCounted = 1_000_000

// Status is what an outbox looks like at a moment.
type Status struct {
	// Kinds has each aggregate type of which an event is still to be published,
	// sorted.
	Kinds []KindStatus

	// AtLeast says that more may be pending, or held back, than was counted: a
	// million of each.
	AtLeast bool

	// Relays are those that are alive, in the order in which they share the
	// shards.
	Relays []RelayStatus

	// UnownedShards is how many of the 256 shards no relay owns. Their events
	// wait.
	UnownedShards int

	// Rows is how many events the table holds in all, published ones too, as the
	// database last estimated it; -1 while it never has. Bytes is what the table
	// takes on disk, with its indexes.
	Rows, Bytes int64
}

// KindStatus counts what is still to be published of an aggregate type.
type KindStatus struct {
	AggregateType                 string
	Pending, Waiting, Quarantined int64

	// Oldest is how long ago the oldest event was written that is pending or
	// waiting, by the database's clock. 0: there is none.
	Oldest time.Duration
}

// RelayStatus is a relay that is alive.
type RelayStatus struct {
	ID        string // of this run of it
	Name      string
	StartedAt time.Time
	Shards    int // that it owns
}

// Total sums up all aggregate types; the oldest is the oldest of all.
func (s *Status) Total() KindStatus {
	var total KindStatus
	for _, k := range s.Kinds {
		total.Pending += k.Pending
		total.Waiting += k.Waiting
		total.Quarantined += k.Quarantined
		total.Oldest = max(total.Oldest, k.Oldest)
	}
	return total
}

// Status tells what is still to be published, and who publishes. It reads
// nothing of what is published, so that it is cheap however much of that is
// kept. q is a pool, a connection or a transaction.
func (s Store) Status(ctx context.Context, q querier) (*Status, error) {
	st, err := s.status(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("look at the outbox: %w", err)
	}
	return st, nil
}

func (s Store) status(ctx context.Context, q querier) (*Status, error) {
	sql := s.queries()
	var st Status
	var k KindStatus
	var seconds float64
	rows, err := q.Query(ctx, sql.kinds, sql.maxCounted)
	if err != nil {
		return nil, err
	}
	_, err = pgx.ForEachRow(rows, []any{&k.AggregateType, &k.Pending, &k.Waiting, &k.Quarantined, &seconds}, func() error {
		k.Oldest = time.Duration(seconds * float64(time.Second))
		st.Kinds = append(st.Kinds, k)
		return nil
	})
	if err != nil {
		return nil, err
	}
	total, limit := st.Total(), int64(sql.maxCounted)
	st.AtLeast = total.Pending >= limit || total.Waiting+total.Quarantined >= limit

	if rows, err = q.Query(ctx, sql.relays); err != nil {
		return nil, err
	}
	st.Relays, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (RelayStatus, error) {
		var r RelayStatus
		var id uuid.UUID
		var started pgtype.Timestamptz
		err := row.Scan(&id, &r.Name, &started, &r.Shards)
		r.ID, r.StartedAt = id.String(), msgrow.UTC(started)
		return r, err
	})
	if err != nil {
		return nil, err
	}
	if rows, err = q.Query(ctx, sql.unowned); err != nil {
		return nil, err
	}
	if st.UnownedShards, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int]); err != nil {
		return nil, err
	}
	if rows, err = q.Query(ctx, sql.size, sql.schema); err != nil {
		return nil, err
	}
	_, err = pgx.ForEachRow(rows, []any{&st.Rows, &st.Bytes}, func() error { return nil })
	return &st, err
}
