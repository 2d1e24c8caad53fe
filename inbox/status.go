package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/msgrow"
)

const (
	// maxCounted bounds what a status costs when very much waits.
	maxCounted = 1_000_000

	// maxLooked bounds the rows that a status reads, where counting reads an index.
	maxLooked = 10_000
)

// Status is what an inbox looks like at a moment.
type Status struct {
	// Consumers has each consumer that a message waits for, sorted by name.
	Consumers []ConsumerStatus

	// AtLeast says that more may wait than was counted: a million of a consumer.
	AtLeast bool
}

// ConsumerStatus counts what waits for a consumer.
type ConsumerStatus struct {
	Consumer   string // its name, "" where it is not registered
	ConsumerID int32

	// Ready is how many a worker may take, Delayed how many wait for their time,
	// Taken how many a worker has, Behind how many wait behind others of their
	// key, Parked how many are dead and wait for a person. Taken is counted among
	// the 10,000 that are due next.
	Ready, Delayed, Taken, Behind, Parked int64

	// OldestReady is for how long the first of the ready ones has been ready. 0:
	// there is none. With workers it is near that. Of one that somebody has set back
	// by hand, 285 years stand for more.
	OldestReady time.Duration

	// Oldest is how long ago the oldest was stored, or its replay began: among the
	// 10,000 that have been ready longest, the 10,000 that are due next, and those
	// parked.
	Oldest time.Duration

	// NextDue is when the next of the delayed is ready. Zero: there is none.
	NextDue time.Time
}

// Total is how many there are.
func (c *ConsumerStatus) Total() int64 { return c.Ready + c.Delayed + c.Taken + c.Behind + c.Parked }

// Status tells what waits, by the database's clock. It reads indexes, so that it
// is cheap however much that is. q is a pool, a connection or a transaction.
func (s Store) Status(ctx context.Context, q querier) (*Status, error) {
	st, err := s.status(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("look at the inbox: %w", err)
	}
	return st, nil
}

func (s Store) status(ctx context.Context, q querier) (*Status, error) {
	rows, err := q.Query(ctx, s.tables().rows.waiting)
	if err != nil {
		return nil, err
	}
	var st Status
	st.Consumers, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c ConsumerStatus, err error) {
		return c, row.Scan(&c.ConsumerID, &c.Consumer)
	})
	if err != nil {
		return nil, err
	}
	for i := range st.Consumers {
		full, err := s.count(ctx, q, &st.Consumers[i])
		if err != nil {
			return nil, err
		}
		st.AtLeast = st.AtLeast || full
	}
	return &st, nil
}

// count counts what waits for a consumer. Full: not all was counted.
func (s Store) count(ctx context.Context, q querier, c *ConsumerStatus) (full bool, err error) {
	rows, err := q.Query(ctx, s.tables().rows.status, c.ConsumerID, int64(maxCounted), int64(maxLooked))
	if err != nil {
		return false, err
	}
	var stored, due int64
	var oldestReady, oldest float64
	var next pgtype.Timestamptz
	columns := []any{&stored, &c.Ready, &due, &c.Taken, &c.Parked, &oldestReady, &oldest, &next}
	_, err = pgx.ForEachRow(rows, columns, func() error { return nil })
	c.Delayed = max(due-c.Taken, 0)
	c.Behind = max(stored-c.Ready-due-c.Parked, 0)
	c.OldestReady, c.Oldest = seconds(oldestReady), seconds(oldest)
	c.NextDue = msgrow.UTC(next)
	return stored >= maxCounted, err
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// querier reads: a pool, a connection and a transaction can.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
