package dedup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Settings are how a consumer is configured, as far as somebody beside it must
// know that: `semel doctor` compares them with the database and the broker. Zero
// is not known; a negative duration is for ever.
type Settings struct {
	Workers  int // handlers that run at once
	PoolSize int // connections of the pool, at most

	Retention      time.Duration // of what was handled
	HandlerTimeout time.Duration // of one attempt
	MaxPayload     int           // bytes
	Ordering       string        // "per_key", "strict", "via_inbox"
	TooOld         string        // what happens to a message older than what was purged: "dead_letter", "run"

	RetryAttempts int           // in all, before a message is dead
	RetryMaxAge   time.Duration // from the first failed attempt on

	DeadLetterRetention time.Duration // of dead letters that somebody has decided
}

// ConsumerSettings are the settings of one consumer.
type ConsumerSettings struct {
	Consumer string

	// Settings are what it noted when it last started; the zero value if it
	// never did.
	Settings Settings

	// NotedAt is when, and zero if it never did.
	NotedAt time.Time

	// Err says that what stands there cannot be read: somebody has written it by hand.
	// Settings are zero then.
	Err error
}

// storedSettings is how settings stand in the table.
type storedSettings struct {
	Workers             int     `json:"workers,omitempty"`
	PoolSize            int     `json:"pool_size,omitempty"`
	Retention           seconds `json:"retention,omitempty"`
	HandlerTimeout      seconds `json:"handler_timeout,omitempty"`
	MaxPayload          int     `json:"max_payload,omitempty"`
	Ordering            string  `json:"ordering,omitempty"`
	TooOld              string  `json:"too_old,omitempty"`
	RetryAttempts       int     `json:"retry_attempts,omitempty"`
	RetryMaxAge         seconds `json:"retry_max_age,omitempty"`
	DeadLetterRetention seconds `json:"dead_letter_retention,omitempty"`
}

// forever is what every negative duration is read back as.
const forever time.Duration = -1

// seconds is a duration as a number that people read too.
type seconds time.Duration

// MarshalJSON implements [json.Marshaler].
func (s seconds) MarshalJSON() ([]byte, error) {
	if s < 0 {
		return []byte("-1"), nil
	}
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *seconds) UnmarshalJSON(text []byte) error {
	var n float64
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	switch nanoseconds := math.Round(n * float64(time.Second)); {
	case n < 0:
		*s = seconds(forever)
	case nanoseconds >= math.MaxInt64:
		return fmt.Errorf("%g seconds are too many", n)
	default:
		*s = seconds(nanoseconds)
	}
	return nil
}

// NoteSettings writes down how a consumer is configured: when that has changed,
// and else once a day. A consumer that is not registered has no row to note it in.
//
// A role that may not write it is no error: the consumer works without, and only
// `semel doctor` knows less. So db is a pool or a connection and no transaction,
// which that would end.
func (s Store) NoteSettings(ctx context.Context, db DB, consumer string, settings Settings) error {
	text, err := json.Marshal(storedSettings{
		Workers: settings.Workers, PoolSize: settings.PoolSize,
		Retention: seconds(settings.Retention), HandlerTimeout: seconds(settings.HandlerTimeout),
		MaxPayload: settings.MaxPayload, Ordering: settings.Ordering, TooOld: settings.TooOld,
		RetryAttempts: settings.RetryAttempts, RetryMaxAge: seconds(settings.RetryMaxAge),
		DeadLetterRetention: seconds(settings.DeadLetterRetention),
	})
	if err == nil {
		_, err = db.Exec(ctx, s.queries().settingsNote, ConsumerID(consumer), string(text))
		// Above READ COMMITTED a process that starts at the same moment is in the
		// way. One that always is notes its own, and the consumer's row is right.
		for tries := 0; isSerialization(err) && tries < maxRegisterTries; tries++ {
			_, err = db.Exec(ctx, s.queries().settingsNote, ConsumerID(consumer), string(text))
		}
	}
	if err != nil && !isForbidden(err) && !isSerialization(err) {
		return fmt.Errorf("note the settings of consumer %.64q: %w", consumer, err)
	}
	return nil
}

// querier is what [Store.LoadSettings] needs of a *pgxpool.Pool, *pgx.Conn or
// pgx.Tx.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// LoadSettings returns what each registered consumer noted, by name. What cannot be
// read is told of the one consumer. db is a pool, a connection or a transaction.
func (s Store) LoadSettings(ctx context.Context, db querier) ([]ConsumerSettings, error) {
	rows, err := db.Query(ctx, s.queries().settingsLoad)
	if err != nil {
		return nil, fmt.Errorf("load the settings of consumers: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (ConsumerSettings, error) {
		var c ConsumerSettings
		var text []byte
		var at pgtype.Timestamptz
		if err := row.Scan(&c.Consumer, &text, &at); err != nil || text == nil {
			return c, err
		}
		c.NotedAt = at.Time
		var stored storedSettings
		if err := json.Unmarshal(text, &stored); err != nil {
			c.Err = fmt.Errorf("read the settings of consumer %.64q: %w", c.Consumer, err)
			return c, nil
		}
		c.Settings = Settings{
			Workers: stored.Workers, PoolSize: stored.PoolSize,
			Retention: time.Duration(stored.Retention), HandlerTimeout: time.Duration(stored.HandlerTimeout),
			MaxPayload: stored.MaxPayload, Ordering: stored.Ordering, TooOld: stored.TooOld,
			RetryAttempts: stored.RetryAttempts, RetryMaxAge: time.Duration(stored.RetryMaxAge),
			DeadLetterRetention: time.Duration(stored.DeadLetterRetention),
		}
		return c, nil
	})
	if err != nil {
		return nil, fmt.Errorf("load the settings of consumers: %w", err)
	}
	return all, nil
}

func isForbidden(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42501"
}
