//go:build !plant_no_intent

package calls

import "context"

// intended takes the call of t, which commits the intent of a new one, and then does
// the work. A crash in between leaves a call too many in the ledger, never one too few.
func (l *Ledger) intended(ctx context.Context, t *try, work func(db querier) error) error {
	if err := l.take(ctx, l.pool, t); err != nil {
		return err
	}
	return work(l.pool)
}
