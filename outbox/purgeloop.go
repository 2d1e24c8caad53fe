package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/semel-go/semel/internal/purging"
)

// KeepForever is the [RelayConfig.Retention] of a relay that purges nothing.
const KeepForever time.Duration = -1

// purge deletes old events now and then until ctx ends; of all relays, one does.
func (r *relayRun) purge(ctx context.Context) {
	if r.cfg.Retention < 0 {
		return
	}
	store := NewStore(r.cfg.Schema)
	rhythm := r.purges
	rhythm.Every = min(rhythm.Every, r.cfg.Retention)
	rhythm.Look = min(rhythm.Look, rhythm.Every)
	purging.Loop{
		Rhythm: rhythm,
		Turn: func(ctx context.Context, every time.Duration) (bool, error) {
			return r.takePurgeTurn(ctx, store, every)
		},
		Purge: func(ctx context.Context, goesOn func(int64, float64)) (int64, error) {
			deleted, err := store.Purge(ctx, r.pool, r.cfg.Retention, PurgeConfig{
				Progress: goesOn, Archive: r.cfg.Archive, ArchiveRetention: r.cfg.ArchiveRetention,
			})
			if ctx.Err() == nil {
				r.counters.purged(deleted, err)
			}
			return deleted, err
		},
		Logger: r.cfg.Logger.With(slog.String("relay", r.cfg.Name)),
	}.Run(ctx)
}

// takePurgeTurn reports whether this relay may purge: yes if none took the turn
// for so long, which the database notes. With 0 it takes the turn in any case.
func (r *Relay) takePurgeTurn(ctx context.Context, store Store, every time.Duration) (taken bool, err error) {
	tag, err := r.pool.Exec(ctx, store.q.purgeTurn, every)
	if err != nil {
		return false, fmt.Errorf("take the turn to purge the outbox: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}
