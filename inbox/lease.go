package inbox

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
)

// newOwner is who holds a lease: another one for each worker, so that none mistakes
// another's for its own.
func newOwner() pgtype.UUID {
	owner := pgtype.UUID{Valid: true}
	_, _ = rand.Read(owner.Bytes[:]) // never fails
	return owner
}

// keep renews the leases of what is held.
func (w *worker) keep(ctx context.Context) {
	ticker := time.NewTicker(w.in.cfg.Lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		w.mu.Lock()
		ids := make([]dedup.ID, 0, len(w.held))
		for id := range w.held {
			ids = append(ids, id)
		}
		w.mu.Unlock()
		if len(ids) > 0 {
			w.in.renew(ctx, w.owner, ids...) // what cannot be renewed runs out
		}
	}
}

// renew keeps messages for who holds them. What is being handled may be locked, and
// is passed over; so one that is about to be handled again is renewed before.
func (in *Inbox) renew(ctx context.Context, owner pgtype.UUID, ids ...dedup.ID) {
	in.changeLeases(ctx, in.rows.renew, in.consumerID, uuids(ids), owner, interval(in.cfg.Lease))
}

// giveBack releases what the engine returned.
func (w *worker) giveBack(ctx context.Context) {
	w.mu.Lock()
	ids := w.returned
	w.returned = nil
	w.mu.Unlock()
	if len(ids) > 0 {
		w.in.release(ctx, w.owner, ids...)
	}
}

// release makes ready what this process held and did not handle.
func (in *Inbox) release(ctx context.Context, owner pgtype.UUID, ids ...dedup.ID) {
	in.changeLeases(context.WithoutCancel(ctx), in.rows.release, in.consumerID, uuids(ids), owner)
}

// uuids are ids as any exec mode can send them: a list of another type has no
// encoding where the server does not tell of what type it is.
func uuids(ids []dedup.ID) []pgtype.UUID {
	list := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		list[i] = pgtype.UUID{Bytes: id, Valid: true}
	}
	return list
}

func (in *Inbox) changeLeases(ctx context.Context, sql string, args ...any) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	if _, err := in.pool.Exec(ctx, sql, args...); err != nil && ctx.Err() == nil {
		in.cfg.Logger.WarnContext(ctx, "leases of the inbox could not be changed; they run out by themselves",
			slog.String("consumer", in.consumer), slog.Any("error", err))
	}
}
