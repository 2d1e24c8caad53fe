package dedup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/handler"
)

var (
	// ErrGap is the error of a message that a version guard holds back: versions of
	// its entity that come before it have not been handled.
	ErrGap = errors.New("versions are missing before this one")

	// ErrUnversioned is the error of a message without entity or version, where
	// [GuardConfig.Required] asks for both.
	ErrUnversioned = errors.New("the message says no entity, or no version of it")
)

// GuardConfig is everything about a version guard that has a default.
type GuardConfig struct {
	// Kind says what the entities are ("order"), where a consumer hears of several
	// kinds that may have the same keys. Guards of one kind share their versions.
	Kind string

	// Entity is what a message is about; nil or empty: nothing that has versions. It
	// must not block. Defaults to the message's key.
	Entity func(*handler.Message) []byte

	// Version is which version of its entity a message carries, if it says so. It
	// must not block. A number of the writer's that rises by one is best; a time, see
	// [ByTime], lets two changes of one moment pass in either order. A text that
	// only compares as text (the sequence of a CloudEvent) is no version. Defaults to
	// the message's version, where it is not 0.
	Version func(*handler.Message) (version int64, ok bool)

	// Required has a message without entity or version fail for good, with
	// [ErrUnversioned], where every message must have both. By default it is handled
	// without the guard, as if there was none.
	Required bool

	// CountGaps counts the versions that were passed over and have not come since,
	// see [Store.Gaps]. Only for versions that rise by one.
	CountGaps bool

	// Hold keeps a version from running before the one below it: the message fails
	// with [ErrGap] and is tried again after Hold. That spends an attempt, so it waits
	// at most Hold times the attempts of its consumer, then it is a dead letter;
	// replayed by a person it runs in spite of the gap. Only for versions that rise by
	// one, and not with ordering Strict, where what is missing waits behind what
	// waits for it. 0: nothing is held.
	Hold time.Duration

	// First is the version that every entity begins with, where the consumer has seen
	// them all from their beginning: what comes before it is a gap too. 0: an
	// entity may begin with any.
	First int64
}

// ByTime takes for the version of a message when it occurred, in microseconds.
func ByTime(msg *handler.Message) (version int64, ok bool) {
	return msg.OccurredAt.UnixMicro(), !msg.OccurredAt.IsZero()
}

// VersionGuard is [Store.VersionGuard] in the default schema.
func VersionGuard(cfg GuardConfig) handler.Middleware { return Store{}.VersionGuard(cfg) }

// VersionGuard returns a middleware that keeps an older state from replacing a
// newer one. It notes the highest version of each entity that its consumer
// handled, in the transaction of the handler. A message that is strictly older
// ends as [handler.Superseded], and its handler does not run; one of the same
// version runs.
//
// ONLY FOR EVENTS THAT CARRY THE WHOLE STATE of their entity. One that carries a
// change ("10 more", "line added") must not be guarded: the older one would be
// dropped, and its change lost.
//
// The note is a row that the transaction holds, so that messages of one entity run
// one after the other, in all processes. A handler that fails takes its version
// back. Whoever runs the handler without the engine gives it a context of
// [handler.WithCause].
//
// It panics if Hold or First is negative.
func (s Store) VersionGuard(cfg GuardConfig) handler.Middleware {
	if cfg.Hold < 0 || cfg.First < 0 {
		panic("dedup: Hold and First of a version guard must not be negative")
	}
	if cfg.Entity == nil {
		cfg.Entity = func(msg *handler.Message) []byte { return msg.Key }
	}
	if cfg.Version == nil {
		cfg.Version = func(msg *handler.Message) (int64, bool) { return msg.Version, msg.Version != 0 }
	}
	g := guard{GuardConfig: cfg, queries: s.queries()}
	return func(next handler.Func) handler.Func {
		return func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
			runs, err := g.admit(ctx, tx, msg)
			if err != nil || !runs {
				return err
			}
			return next(ctx, tx, msg)
		}
	}
}

type guard struct {
	GuardConfig
	queries *queries
}

// admit reports whether msg may run. If it is older than what ran, it ends here.
func (g guard) admit(ctx context.Context, tx pgx.Tx, msg *handler.Message) (runs bool, err error) {
	entity := g.Entity(msg)
	version, versioned := g.Version(msg)
	if len(entity) == 0 || !versioned {
		if g.Required {
			return false, handler.Permanent(ErrUnversioned)
		}
		return true, nil
	}
	cause := handler.CauseFrom(ctx)
	if cause == nil {
		return false, errors.New("guard the version of a message: the context does not say for which consumer; outside of the engine, see handler.WithCause")
	}
	v := g.versionOf(cause, entity, version)
	counts := g.CountGaps || g.Hold > 0
	older, previous, err := v.note(ctx, tx, counts)
	switch {
	case err != nil:
		return false, err
	case older:
		if counts {
			err = v.fill(ctx, tx)
		}
		cause.End(handler.Superseded)
		return false, err
	case g.Hold > 0 && !cause.Replay && version > previous && version-1 > previous:
		return false, handler.RetryAfter(g.Hold, fmt.Errorf("%w: version %d of its entity came after %d", ErrGap, version, previous))
	}
	return true, nil
}

// entityVersion is a version that a message brought.
type entityVersion struct {
	queries  *queries
	consumer int32
	kind     string
	entity   []byte
	id       ID // of the entity
	message  ID
	version  int64
	below    int64 // what an entity that is new is taken to have had before
	gaps     int64 // and how many it lacks then
}

func (g guard) versionOf(cause *handler.Cause, entity []byte, version int64) entityVersion {
	v := entityVersion{
		queries: g.queries, consumer: ConsumerID(cause.Consumer), kind: g.Kind, entity: entity, id: entityID(g.Kind, entity),
		message: cause.MessageID, version: version, below: max(version, math.MinInt64+1) - 1,
	}
	if g.First > 0 && version > g.First {
		v.below, v.gaps = g.First-1, version-g.First
	}
	if v.message == (ID{}) {
		v.message = MessageID(cause.Message.ID)
	}
	return v
}

// entityID is under what the versions of an entity stand.
func entityID(kind string, entity []byte) ID { return HashID([]byte(kind), entity) }

// note makes v the highest version, unless it is older. Previous is the highest
// before it.
func (v entityVersion) note(ctx context.Context, tx pgx.Tx, counts bool) (older bool, previous int64, err error) {
	var before pgtype.Int8
	err = tx.QueryRow(ctx, v.queries.guard, v.consumer, v.id, v.kind, v.entity, v.message, v.version, v.below, v.gaps, counts).Scan(&before)
	if older, err = isOlder(err); err != nil {
		return false, 0, v.failed(err)
	}
	if !before.Valid {
		return older, v.below, nil
	}
	return older, before.Int64, nil
}

// fill takes a version that came late off the gaps.
func (v entityVersion) fill(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, v.queries.guardFill, v.consumer, v.id, v.version); err != nil {
		return v.failed(err)
	}
	return nil
}

func (v entityVersion) failed(err error) error {
	err = fmt.Errorf("note version %d of the message's entity: %w", v.version, err)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" { // lock_timeout: another handler has the entity
		return handler.InFlight(err)
	}
	return handler.Outage(err)
}
