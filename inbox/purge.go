package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/internal/purging"
)

// KeepForever is the [Config.Retention] of a consumer that purges nothing.
const KeepForever time.Duration = -1

// purge deletes what the consumer handled long ago, and what people decided long
// ago, now and then until ctx ends. Of all its processes one does, on one
// connection at a time: of those that handlers leave free, if the pool has more
// than one.
func (in *Inbox) purge(ctx context.Context) {
	forgets := in.cfg.Retention >= 0
	lets := in.cfg.DeadLetterRetention > 0 || in.cfg.DeadLetterRedactAfter > 0
	if !forgets && !lets {
		return
	}
	purging.Loop{
		Rhythm: in.purges,
		Turn: func(ctx context.Context, every time.Duration) (bool, error) {
			return in.store.TakePurgeTurn(ctx, in.pool, in.consumer, every)
		},
		Purge: func(ctx context.Context, goesOn func(int64, float64)) (purged int64, err error) {
			if forgets {
				purged, err = in.store.Purge(ctx, in.pool, in.cfg.Retention, dedup.PurgeConfig{Consumer: in.consumer, Progress: goesOn})
				if err == nil {
					var calls int64 // of messages that have no row
					calls, err = in.store.PurgeCalls(ctx, in.pool, in.cfg.Retention, dedup.PurgeConfig{Consumer: in.consumer, Progress: goesOn})
					purged += calls
				}
				if err == nil {
					err = in.purgeJournal(ctx)
				}
			}
			if lets && err == nil {
				var letters dlq.Purged
				letters, err = in.letters.Purge(ctx, in.pool, dlq.PurgeConfig{
					Consumer: in.consumer, MaxAge: in.cfg.DeadLetterRetention, RedactAfter: in.cfg.DeadLetterRedactAfter, Progress: goesOn,
				})
				purged += letters.Deleted + letters.Redacted
			}
			return purged, err
		},
		Logger: in.cfg.Logger.With(slog.String("consumer", in.consumer)),
	}.Run(ctx)
}

// purgeJournal forgets suspects that were settled by somebody else.
func (in *Inbox) purgeJournal(ctx context.Context) error {
	if _, err := in.pool.Exec(ctx, in.rows.journalPurge, in.consumerID, interval(in.cfg.Retention)); err != nil {
		return fmt.Errorf("purge the journal of consumer %q: %w", in.consumer, err)
	}
	return nil
}
