package calls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/schema"
)

const (
	defaultGrace            = 5 * time.Second
	defaultMaxResult        = 1 << 20
	defaultStatementTimeout = 5 * time.Second
)

// Config is everything about a ledger that has a default. The zero value works.
type Config struct {
	// Schema holds the tables. Defaults to [schema.Default].
	Schema string

	// Lease is for how long a process has a call in hand before another one may take
	// it over. It must not be shorter than the timeout of a call and Grace. Defaults
	// to just that.
	Lease time.Duration

	// Grace is how long after its timeout a call has ended for certain: for a request
	// that is still on its way to the provider, or being worked on there. Defaults to 5 s.
	Grace time.Duration

	// MaxResult bounds a result, in bytes. Defaults to 1 MiB. The call of one that is
	// larger is done and is not repeated, see [ErrNotKept].
	MaxResult int

	// StatementTimeout bounds each statement of the ledger. Defaults to 5 s.
	StatementTimeout time.Duration

	// Codec makes results unreadable while they are stored. Nil: they are stored as
	// they are.
	Codec handler.Codec

	// Logger is told what a person may want to know. Defaults to [slog.Default].
	Logger *slog.Logger

	// Trace, if set, is told how far a call is, on its path. It must be safe for
	// concurrent use.
	Trace func(ctx context.Context, p Point, c Call)
}

func (c Config) withDefaults() Config {
	if c.Schema == "" {
		c.Schema = schema.Default
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	if c.MaxResult == 0 {
		c.MaxResult = defaultMaxResult
	}
	if c.StatementTimeout == 0 {
		c.StatementTimeout = defaultStatementTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if err := schema.CheckName(c.Schema); err != nil {
		errs = append(errs, err)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Lease", c.Lease}, {"Grace", c.Grace}, {"StatementTimeout", c.StatementTimeout}} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %s; it must not be negative", d.name, d.value))
		}
	}
	if c.MaxResult < 0 {
		errs = append(errs, fmt.Errorf("MaxResult is %d; it must not be negative", c.MaxResult))
	}
	return errors.Join(errs...)
}

// Ledger makes calls to the outside that take effect once. It is safe for concurrent
// use.
type Ledger struct {
	pool *pgxpool.Pool
	cfg  Config
	q    queries
}

// New returns a ledger on a pool, whose life stays with the caller. It does no I/O.
func New(pool *pgxpool.Pool, cfg Config) (*Ledger, error) {
	cfg = cfg.withDefaults()
	err := cfg.validate()
	if pool == nil {
		err = errors.Join(errors.New("pool is nil"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("configure ledger of calls: %w", err)
	}
	return &Ledger{pool: pool, cfg: cfg, q: newQueries(cfg.Schema)}, nil
}

func (l *Ledger) trace(ctx context.Context, p Point, c Call) {
	if l.cfg.Trace != nil {
		l.cfg.Trace(ctx, p, c)
	}
}

// bounded is the context of one statement, which a cancelled message does not cut
// off: nobody would know whether it was done.
func (l *Ledger) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), l.cfg.StatementTimeout)
}
