package inbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
)

// RunNowResult says what became of a message that was to be handled at once.
type RunNowResult struct {
	// ID is its id, as it was given.
	ID string

	// Changed: it was delayed, or stopped by hand, and is ready now.
	Changed bool

	// State is where it stands if it was not changed: ready, and that is all that
	// can be done; taken by a worker; behind another of its key; parked, then its
	// dead letter is to be replayed or discarded ([Store.Replay]). Empty: the inbox
	// does not have it.
	State State

	// First is the first of its key if it is behind others: that one must be
	// handled before it.
	First *Record

	// DeadLetterID is its dead letter, if it is parked or replayed.
	DeadLetterID int64
}

// RunNow makes messages of a consumer ready that wait for the time of their next
// attempt, or for nothing at all, as somebody has made them by hand. Their places and
// their failed attempts stay as they are. It returns a result for each id, in their
// order; with an error those it came to.
//
// q is a pool, a connection or a transaction.
func (s Store) RunNow(ctx context.Context, q querier, consumer string, ids ...string) ([]RunNowResult, error) {
	results := make([]RunNowResult, 0, len(ids))
	for _, id := range ids { // one at a time: nobody waits for two of its rows
		r, err := s.runNow(ctx, q, consumer, id)
		if err != nil {
			return results, fmt.Errorf("run message %.255q of consumer %q now: %w", printable(id), consumer, err)
		}
		results = append(results, r)
	}
	return results, nil
}

func (s Store) runNow(ctx context.Context, q querier, consumer, id string) (RunNowResult, error) {
	r := RunNowResult{ID: id}
	rows, err := q.Query(ctx, s.tables().rows.runNow, dedup.ConsumerID(consumer), dedup.MessageID(id))
	if err != nil {
		return r, err
	}
	changed, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return r, err
	}
	one := searchFor(consumer, id)
	one.limit = 1
	found, err := s.search(ctx, q, one)
	if err != nil {
		return r, err
	}
	r.Changed = len(changed) > 0
	if len(found) == 0 { // or it was handled already
		return r, nil
	}
	r.State, r.DeadLetterID = found[0].State, found[0].DeadLetterID
	if r.State != StateBehind {
		return r, nil
	}
	first := search{
		consumer: pgtype.Int4{Int32: found[0].ConsumerID, Valid: true},
		key:      keyHash(found[0].Message.Key), before: found[0].Seq, limit: 1,
	}
	if found, err = s.search(ctx, q, first); err == nil && len(found) > 0 {
		r.First = &found[0]
	}
	return r, err
}
