//go:build plant_no_intent

package calls

import "context"

// intended is the planted bug "no-intent": the intent is committed when the call has
// been made.
func (l *Ledger) intended(ctx context.Context, t *try, work func(db querier) error) error {
	tx, err := l.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Commit(context.WithoutCancel(ctx)) }()
	if err := l.take(ctx, tx, t); err != nil {
		return err
	}
	return work(tx)
}
