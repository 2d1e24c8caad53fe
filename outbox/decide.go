package outbox

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Retry makes events due now that wait or are in quarantine, as if they had
// never failed: the pauses between attempts and their maximum age begin anew.
// The relay notices within half a second.
//
// It returns the ids that it changed, in the order given. The others were not
// held back, or no longer: load one to see what became of it. A relay whose
// policy is [Continue] has published later events of the aggregate already:
// consumers see this one behind them.
func (s Store) Retry(ctx context.Context, q querier, ids ...string) (changed []string, err error) {
	return each(ctx, q, "retry", s.queries().retry, ids)
}

// Discard decides that events are never published; the relay goes on with what
// they held back within half a second. An event that is pending, waiting or in
// quarantine can be discarded. One that the relay has in hand may be published
// all the same; its state says so then.
//
// It returns the ids that it changed, in the order given. For the others a relay
// was faster, or another person: load one to see what became of it.
func (s Store) Discard(ctx context.Context, q querier, ids ...string) (changed []string, err error) {
	return each(ctx, q, "discard", s.queries().discard, ids)
}

// each runs a statement for one event at a time: one that locked several rows
// could meet a relay that notes them in another order.
func each(ctx context.Context, q querier, doing, sql string, ids []string) (changed []string, err error) {
	parsed := make([]uuid.UUID, len(ids))
	for i, id := range ids {
		if parsed[i], err = parseID(id); err != nil {
			return nil, fmt.Errorf("%s event %.64q: %w", doing, id, err)
		}
	}
	for _, id := range parsed {
		rows, err := q.Query(ctx, sql, id)
		var hit []uuid.UUID
		if err == nil {
			hit, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		}
		if err != nil {
			return changed, fmt.Errorf("%s event %s: %w", doing, id, err)
		}
		if len(hit) > 0 {
			changed = append(changed, id.String())
		}
	}
	return changed, nil
}
