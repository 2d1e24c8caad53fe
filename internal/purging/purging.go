// Package purging is the loop in which programs that run for long delete old
// rows now and then. Any number of them, started again as often as anybody
// likes, purge as often as one would: whose turn it is stands in the database.
package purging

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/internal/jitter"
)

// Rhythm is when to purge.
type Rhythm struct {
	Every time.Duration // how long after a purge the next one begins
	Look  time.Duration // how long a program waits at most until it looks, and looks again, whether it is time
}

// Usual is the rhythm of all but tests. A purge reads a whole table, and what
// is purged a few hours late costs little room.
func Usual() Rhythm { return Rhythm{Every: 6 * time.Hour, Look: 20 * time.Minute} }

// A turn lasts so long without a word; a purge that goes on says so more often.
const wordsInATurn = 4

// SQLSTATEs that have a meaning of their own here.
const (
	codeSerialization = "40001"
	codeForbidden     = "42501"
)

// Loop is what the purge of one table needs. All fields are required.
type Loop struct {
	Rhythm

	// Turn reports whether the caller may purge: true once in a while of every,
	// whoever asks. With 0 it prolongs the turn of the caller.
	Turn func(ctx context.Context, every time.Duration) (bool, error)

	// Purge deletes what is old. It calls goesOn now and then.
	Purge func(ctx context.Context, goesOn func(int64, float64)) (deleted int64, err error)

	Logger *slog.Logger
}

// Run purges now and then until ctx ends. It fails at nothing: what goes wrong
// is logged, once until it is right again, and done later.
func (l Loop) Run(ctx context.Context) {
	pauses := jitter.New(l.Look, l.Look)
	timer := time.NewTimer(pauses.NextBackOff())
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		mine, deleted, err := l.once(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !failing {
				l.tellFailed(ctx, err)
			}
			failing = true
		case mine:
			failing = false
			if deleted > 0 {
				l.Logger.InfoContext(ctx, "old rows are purged", slog.Int64("deleted", deleted), slog.Duration("took", time.Since(began)))
			}
		}
		timer.Reset(pauses.NextBackOff())
	}
}

func (l Loop) once(ctx context.Context) (mine bool, deleted int64, err error) {
	mine, err = l.Turn(ctx, l.Every)
	switch {
	case sqlState(err) == codeSerialization: // above READ COMMITTED: somebody else has just taken it
		return false, 0, nil
	case err != nil || !mine:
		return false, 0, err
	}
	said := time.Now()
	deleted, err = l.Purge(ctx, func(int64, float64) {
		if time.Since(said) > l.Every/wordsInATurn {
			said = time.Now()
			_, _ = l.Turn(ctx, 0) // in vain, another one purges beside us: that costs time and nothing else
		}
	})
	return true, deleted, err
}

func (l Loop) tellFailed(ctx context.Context, err error) {
	if sqlState(err) == codeForbidden {
		l.Logger.WarnContext(ctx, "old rows are not purged, this role may not: run what `semel migrate grants` prints, or have somebody else purge and set Retention to KeepForever",
			slog.Any("error", err))
		return
	}
	l.Logger.WarnContext(ctx, "old rows could not be purged: it is tried again later", slog.Any("error", err))
}

func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
