package dedup

import (
	"context"
	"fmt"
	"time"
)

// PurgeCalls deletes the calls to the outside that ended longer ago than retention
// and whose messages have no row: [Store.Purge] deletes the calls of the others
// with them. A call of which nobody knows the end stays, and so does its message.
//
// It returns how many it deleted, also with an error. Everything else is as with
// [Store.Purge].
func (s Store) PurgeCalls(ctx context.Context, db DB, retention time.Duration, cfg PurgeConfig) (deleted int64, err error) {
	deleted, err = s.purge(ctx, db, "calls", s.queries().purgeCalls, retention, cfg)
	if err != nil {
		return deleted, fmt.Errorf("purge calls of more than %s ago (%d deleted): %w", retention, deleted, err)
	}
	return deleted, nil
}
