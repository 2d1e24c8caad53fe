package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
)

const (
	defaultReplayRate     = 50.0
	defaultReplayFailures = 10

	// lookEvery is how often a bulk replay looks at what has become of it.
	lookEvery = time.Second
)

// ErrDieAgain is returned by [Store.ReplayAll] when so many of the messages have
// died again that it stopped: what killed them has not been mended.
var ErrDieAgain = errors.New("the replayed messages die again")

// ReplayAllConfig is everything about a bulk replay that has a default.
type ReplayAllConfig struct {
	// By is who decided it.
	By string

	// Rate is how many replays begin in a second. Defaults to 50; negative: as many
	// as can.
	Rate float64

	// MaxFailures is how many may die again before it stops. Defaults to 10;
	// negative: it does not stop.
	MaxFailures int

	// Progress, if set, is told every second, and at the end, how far it is.
	Progress func(Replayed)
}

// Replayed says how far a bulk replay is.
type Replayed struct {
	// Begun are the dead letters that are handled again. They go on whatever
	// becomes of the bulk, wherever the inbox of their consumer is worked.
	Begun []int64

	// Refused are those that could not be: somebody else decided about them
	// meanwhile, or their payload was deleted.
	Refused []RefusedReplay

	// Of those begun: Waiting are in the inbox still, Handled have had their
	// effect, DiedAgain are open again. Superseded and Skipped have had none, since
	// their handler ended them so: what they say was overtaken, or is not wanted.
	Waiting, Handled, DiedAgain, Superseded, Skipped int64
}

// RefusedReplay is a dead letter that could not be replayed, and why.
type RefusedReplay struct {
	ID  int64
	Err error // wraps [ErrNoDeadLetter] or [ErrRedacted]
}

// ReplayAll is [Store.Replay] for many dead letters, in the order given: which ones
// they are is decided before the first begins. Oldest first keeps the order of
// those that have no place in the inbox.
//
// It returns when the last has begun, which is before it is handled. The error
// wraps [ErrDieAgain] if it stopped because too many had died again, or is that of
// ctx or the database. Called again with the same ids it goes on: what was handled
// meanwhile is refused.
func (s Store) ReplayAll(ctx context.Context, db DB, ids []int64, cfg ReplayAllConfig) (Replayed, error) {
	b := bulkReplay{store: s, db: db, cfg: cfg}
	b.cfg.Rate = cmp.Or(cfg.Rate, defaultReplayRate)
	b.cfg.MaxFailures = cmp.Or(cfg.MaxFailures, defaultReplayFailures)
	err := b.run(ctx, ids)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookEvery)
	defer cancel()
	if lookErr := b.look(last); err == nil {
		err = lookErr
	}
	if err != nil {
		return b.done, fmt.Errorf("replay %d dead letters (%d begun): %w", len(ids), len(b.done.Begun), err)
	}
	return b.done, nil
}

// bulkReplay is one bulk replay on its way.
type bulkReplay struct {
	store Store
	db    DB
	cfg   ReplayAllConfig
	done  Replayed

	claimed []dedup.ID // under what those begun are claimed again
}

func (b *bulkReplay) run(ctx context.Context, ids []int64) error {
	next, looked := time.Now(), time.Now()
	pace := lookEvery
	for _, id := range ids {
		if b.cfg.Rate > 0 {
			if err := sleepUntil(ctx, next); err != nil {
				return err
			}
			next = next.Add(time.Duration(float64(time.Second) / b.cfg.Rate))
		}
		if time.Since(looked) >= pace {
			began := time.Now()
			if err := b.look(ctx); err != nil {
				return err
			}
			looked = time.Now()
			pace = max(lookEvery, 10*looked.Sub(began)) // many letters take long to look at
			if next.Before(began) {
				next = looked // what was not done meanwhile is not made up for
			}
		}
		claimed, err := b.store.replay(ctx, b.db, id, b.cfg.By)
		switch {
		case err == nil:
			b.done.Begun, b.claimed = append(b.done.Begun, id), append(b.claimed, claimed)
		case errors.Is(err, ErrNoDeadLetter) || errors.Is(err, ErrRedacted):
			b.done.Refused = append(b.done.Refused, RefusedReplay{ID: id, Err: err})
		default:
			return err
		}
	}
	return nil
}

// look finds out what has become of the replays that began.
func (b *bulkReplay) look(ctx context.Context) error {
	d := &b.done
	rows, err := b.db.Query(ctx, b.store.tables().rows.replayed, d.Begun, b.claimed)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&d.Waiting, &d.Handled, &d.DiedAgain, &d.Superseded, &d.Skipped}, func() error { return nil })
	}
	if err != nil {
		return fmt.Errorf("look at what has become of them: %w", err)
	}
	if b.cfg.Progress != nil {
		b.cfg.Progress(*d)
	}
	if b.cfg.MaxFailures > 0 && d.DiedAgain >= int64(b.cfg.MaxFailures) {
		return fmt.Errorf("%w: %d of them", ErrDieAgain, d.DiedAgain)
	}
	return nil
}

func sleepUntil(ctx context.Context, at time.Time) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
