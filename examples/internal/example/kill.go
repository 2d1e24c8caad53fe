package example

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/examples/internal/crew"
)

// KillInFlight kills a process with SIGKILL at a moment when it is in the middle of
// transactions: it has written and not committed. It returns how many. Another
// process takes its place.
func (r *Run) KillInFlight(ctx context.Context, c *crew.Crew, name string) (inFlight int, err error) {
	for {
		// Freeze it first: what is in flight then is so when it dies.
		if err := c.Freeze(name); err != nil {
			return 0, err
		}
		if inFlight, err = r.openTransactions(ctx, name); err != nil {
			return 0, errors.Join(err, c.Thaw(name))
		}
		if inFlight > 0 {
			return inFlight, c.Replace(name, func() {})
		}
		if err := c.Thaw(name); err != nil {
			return 0, err
		}
		if err := Wait(ctx, 5*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// openTransactions counts what a process has written and not committed.
func (r *Run) openTransactions(ctx context.Context, name string) (n int, err error) {
	err = r.Pool.QueryRow(ctx, `
		SELECT count(*)
		FROM pg_stat_activity
		WHERE application_name = $1
		  AND backend_xid IS NOT NULL`, r.Schema+" "+name).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("look for transactions of %s: %w", name, err)
	}
	return n, nil
}
