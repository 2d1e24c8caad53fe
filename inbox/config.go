package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// Config is everything about a consumer that has a default. The zero value is
// ready to use. It is copied by [New] and never written to.
type Config struct {
	// Schema is the schema that holds Semel's tables. Defaults to
	// [schema.Default], "semel".
	Schema string

	// Workers is how many handlers run at once. Defaults to the pool's size
	// minus 2, at least 1, so that handlers can never starve the engine's own
	// writes; a higher value is an error.
	Workers int

	// HandlerTimeout is how long one attempt may take, Prepare and handler
	// each. Its end cancels the context and fails the attempt. Defaults to 30 s.
	HandlerTimeout time.Duration

	// WatchdogGrace is how long after its context ended a handler may still
	// take to return. Then its connection is closed, the attempt has failed,
	// and its goroutine is counted as stuck. Defaults to 5 s.
	WatchdogGrace time.Duration

	// DrainTimeout is how long running handlers may finish after Run's context
	// ended, before they are cancelled. Defaults to 30 s.
	DrainTimeout time.Duration

	// LockTimeout bounds the wait of a claim for a copy that another process
	// is handling; the message then waits without a worker and tries again.
	// Defaults to 2 s.
	LockTimeout time.Duration

	// StatementTimeout bounds each round trip of the engine's own statements,
	// and its wait for a connection of the pool; a database that accepts and
	// never answers is an outage too. COMMIT may take as long as a handler.
	// Defaults to 10 s.
	StatementTimeout time.Duration

	// QuickAttempts is how many attempts a message gets in place; they hold up
	// what follows of its key, and nothing else. Then it is stored, and its source
	// goes on; see Retry. Defaults to 3, or to Retry.Attempts if that is less.
	QuickAttempts int

	// QuickDelay and QuickMaxDelay shape the pause between quick attempts: the
	// n-th is drawn evenly from 0 to min(QuickMaxDelay, QuickDelay·2ⁿ).
	// Default to 50 ms and 1 s.
	QuickDelay    time.Duration
	QuickMaxDelay time.Duration

	// Retry is the schedule of all attempts.
	Retry Retry

	// RetryOf, if set, returns the schedule for an error: what is zero in it is as
	// in Retry. It is asked with each failed attempt.
	RetryOf func(err error) Retry

	// Ordering is what messages of one key wait for. Defaults to [PerKey].
	Ordering Ordering

	// MaxStored bounds the messages that the inbox holds for this consumer, as far
	// as a look every few seconds can, and MaxStoredPerKey those of one key that
	// wait in order. When it is full, [Inbox.Store] returns [ErrFull], and what a
	// source delivers waits in this process, so that its source is held up. Default
	// to 10,000,000 and 100,000; negative is without bound.
	MaxStored       int
	MaxStoredPerKey int

	// Lease is for how long a worker holds the messages that it took from the
	// inbox. It renews them, but for one that is being handled; after a crash they
	// wait that long. Where it is much shorter than an attempt, another worker may
	// take a message before its failure is noted, and that attempt is not counted.
	// Defaults to 60 s, or to twice HandlerTimeout if that is more.
	Lease time.Duration

	// WorkAhead is how many messages a worker takes from the inbox before there
	// are workers free for them. Defaults to four times Workers, at least 16.
	WorkAhead int

	// OutageMaxDelay is the longest pause between two looks at a database that
	// is away. Defaults to 5 s.
	OutageMaxDelay time.Duration

	// Gates are the breakers of dependencies that the consumer cannot do without.
	// While one is not closed, Run and Work start nothing but one message now and
	// then, to try it, and their sources are paused; [Inbox.Process] returns a
	// [DependencyError], and [Inbox.Store] stores as ever. Of any other breaker only
	// those messages wait that met it.
	Gates []*breaker.Breaker

	// MaxPayload is the largest payload, in bytes, that is handled; a larger
	// one goes to the dead letters. Defaults to 16 MB.
	MaxPayload int

	// MaxInFlight bounds the messages, and MaxInFlightBytes their payloads,
	// that one Run holds at a time. Default to 10,000 and 64 MB.
	MaxInFlight      int
	MaxInFlightBytes int

	// TxOptions begin the handler's transaction. Defaults to the database's
	// own. Read-only is an error: the claim is a write.
	TxOptions pgx.TxOptions

	// Prepare, if set, runs before the transaction begins and on no
	// connection, for calls to the outside. Its error means what a handler's
	// does. It runs again with each attempt. What it finds out it can hand to the
	// handler: [handler.Cause.Keep].
	Prepare func(ctx context.Context, msg *handler.Message) error

	// ID, if set, says under which id a message is claimed: a natural key of
	// the payload, for producers without usable ids. An error is a bad id.
	ID func(msg *handler.Message) (string, error)

	// BadID is what happens to a message without a usable id. Defaults to
	// [BadIDDeadLetter].
	BadID BadIDPolicy

	// Fingerprint, if set, returns the part of a message that is the same in
	// every copy of it (a resend may carry a new delivery time). Returning nil
	// compares nothing. Defaults to type and payload, or of that what the source says
	// is stable ([handler.Message]).
	Fingerprint func(msg *handler.Message) []byte

	// Mismatch is what happens to a message whose id was seen with another
	// fingerprint. Defaults to [MismatchDeadLetter].
	Mismatch MismatchPolicy

	// Retention is how long the record of a handled message is kept. Run and Work
	// purge older ones now and then, in small steps, one process of all that run the
	// consumer. A copy that comes later is handled again, so it must be longer
	// than every way by which an id can come back; at least
	// [dedup.MinRetention]. Negative, as [KeepForever], purges nothing.
	// Defaults to 14 days.
	Retention time.Duration

	// TooOld is what happens to a message that nobody can tell any more whether
	// it was handled: its broker's time ([handler.Origin]) is before what was
	// purged. For topics with history, which are read from their beginning, see
	// [TooOldRun]. Defaults to [TooOldDeadLetter].
	TooOld TooOldPolicy

	// DeadLetterOwner is who looks after new dead letters of this consumer, until
	// somebody assigns them. Defaults to nobody.
	DeadLetterOwner string

	// OnDeadLetter, if set, is called with each dead letter once it is committed:
	// to call a person. It is called on the path of the message, so it must return
	// soon; a panic in it is logged and harms nothing. A crash in between loses the
	// call, never the letter.
	OnDeadLetter func(ctx context.Context, letter *dlq.Letter)

	// DeadLetterRetention is how long a dead letter is kept after it was resolved
	// or discarded; then it is deleted. DeadLetterRedactAfter is when its payload
	// and the values of its headers are deleted; the row stays. Neither ever
	// touches an open one. Zero: for ever.
	DeadLetterRetention   time.Duration
	DeadLetterRedactAfter time.Duration

	// Codec, if set, encodes every payload that is stored: in the inbox, in dead
	// letters, and in the events of DeadLetterRoute, whose relay needs it then. What
	// was stored before is read as it is. See the package comment.
	Codec handler.Codec

	// DeadLetterRoute, if set, has the broker told of dead letters too: each is
	// also an event of this aggregate type in the outbox, written in the same
	// transaction. A relay whose publisher routes by [outbox.AggregateType] sends it
	// to the topic or exchange of that name. See the package comment.
	DeadLetterRoute string

	// Observer, if set, is told what the engine does.
	Observer Observer

	// Logger defaults to [slog.Default].
	Logger *slog.Logger
}

// BadIDPolicy says what happens to a message without a usable id.
type BadIDPolicy int

const (
	// BadIDDeadLetter sends it to the dead letters, reason bad_id.
	BadIDDeadLetter BadIDPolicy = iota

	// BadIDPosition handles it under its position in the source (Kafka: topic
	// id, partition, offset). This guards against redelivery only: a copy that
	// the producer sent again is handled again. Without a position the message
	// goes to the dead letters.
	BadIDPosition
)

// MismatchPolicy says what happens to a message whose id was seen with another
// payload.
type MismatchPolicy int

const (
	// MismatchDeadLetter writes one dead letter for each differing payload.
	MismatchDeadLetter MismatchPolicy = iota

	// MismatchSkip counts it and acknowledges it.
	MismatchSkip
)

func (c Config) withDefaults(maxConns int32) Config {
	setDefault(&c.Schema, schema.Default)
	setDefault(&c.Workers, maxWorkers(maxConns))
	setDefault(&c.HandlerTimeout, 30*time.Second)
	setDefault(&c.WatchdogGrace, 5*time.Second)
	setDefault(&c.DrainTimeout, 30*time.Second)
	setDefault(&c.LockTimeout, 2*time.Second)
	setDefault(&c.StatementTimeout, 10*time.Second)
	if c.Retry.Attempts > 0 {
		setDefault(&c.QuickAttempts, min(3, c.Retry.Attempts))
	}
	setDefault(&c.QuickAttempts, 3)
	c.Retry = c.Retry.withDefaults(c.QuickAttempts)
	setDefault(&c.MaxStored, 10_000_000)
	setDefault(&c.MaxStoredPerKey, 100_000)
	setDefault(&c.Lease, min(max(time.Minute, 2*c.HandlerTimeout), 24*time.Hour))
	setDefault(&c.WorkAhead, max(4*c.Workers, 16))
	setDefault(&c.QuickDelay, 50*time.Millisecond)
	setDefault(&c.QuickMaxDelay, time.Second)
	setDefault(&c.OutageMaxDelay, 5*time.Second)
	setDefault(&c.MaxPayload, 16<<20)
	setDefault(&c.MaxInFlight, 10_000)
	setDefault(&c.MaxInFlightBytes, 64<<20)
	setDefault(&c.Retention, 14*24*time.Hour)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate names every impossible value: the field, its bound, the value.
func (c Config) validate(maxConns int32) error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Workers", int64(c.Workers)},
		{"QuickAttempts", int64(c.QuickAttempts)},
		{"WorkAhead", int64(c.WorkAhead)},
		{"MaxPayload", int64(c.MaxPayload)},
		{"MaxInFlight", int64(c.MaxInFlight)},
		{"MaxInFlightBytes", int64(c.MaxInFlightBytes)},
	} {
		if f.value < 1 {
			refuse("%s is %d; it must be at least 1", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"HandlerTimeout", c.HandlerTimeout},
		{"WatchdogGrace", c.WatchdogGrace},
		{"DrainTimeout", c.DrainTimeout},
		{"LockTimeout", c.LockTimeout},
		{"StatementTimeout", c.StatementTimeout},
		{"QuickDelay", c.QuickDelay},
		{"QuickMaxDelay", c.QuickMaxDelay},
		{"OutageMaxDelay", c.OutageMaxDelay},
		{"Lease", c.Lease},
	} {
		if f.value < time.Millisecond || f.value > 24*time.Hour {
			refuse("%s is %s; it must be between 1ms and 24h", f.name, f.value)
		}
	}
	if limit := maxWorkers(maxConns); c.Workers > limit {
		refuse("Workers is %d; the pool has %d connections, and 2 must stay free for the engine's own writes: at most %d (raise pool_max_conns)", c.Workers, maxConns, limit)
	}
	if c.QuickMaxDelay < c.QuickDelay {
		refuse("QuickMaxDelay is %s; it must not be below QuickDelay, which is %s", c.QuickMaxDelay, c.QuickDelay)
	}
	if c.TxOptions.AccessMode == pgx.ReadOnly || strings.Contains(strings.ToLower(c.TxOptions.BeginQuery), "read only") {
		refuse("TxOptions ask for a read-only transaction; the claim is a write")
	}
	if c.TxOptions.CommitQuery != "" {
		refuse("TxOptions.CommitQuery is set; the engine ends the transaction itself")
	}
	if c.BadID < BadIDDeadLetter || c.BadID > BadIDPosition {
		refuse("BadID is %d; it must be BadIDDeadLetter or BadIDPosition", c.BadID)
	}
	if c.Mismatch < MismatchDeadLetter || c.Mismatch > MismatchSkip {
		refuse("Mismatch is %d; it must be MismatchDeadLetter or MismatchSkip", c.Mismatch)
	}
	if c.Retention >= 0 && c.Retention < dedup.MinRetention {
		refuse("Retention is %s; it must be at least %s, or KeepForever", c.Retention, dedup.MinRetention)
	}
	if c.Retention >= 0 && c.Retention < 2*c.HandlerTimeout {
		refuse("Retention is %s; it must be at least twice HandlerTimeout, which is %s: else a record could be old before it is committed", c.Retention, c.HandlerTimeout)
	}
	if err := c.Retry.validate(c.QuickAttempts, c.Retention); err != nil {
		errs = append(errs, err)
	}
	if c.Ordering < PerKey || c.Ordering > ViaInbox {
		refuse("Ordering is %d; it must be PerKey, Strict or ViaInbox", c.Ordering)
	}
	if c.Ordering != PerKey && c.TxOptions.IsoLevel != "" && c.TxOptions.IsoLevel != pgx.ReadCommitted {
		refuse("TxOptions.IsoLevel is %q; Ordering %s needs %q: who takes a message out of the inbox must see what came behind it meanwhile", c.TxOptions.IsoLevel, c.Ordering, pgx.ReadCommitted)
	}
	if err := dlq.CheckOwner(c.DeadLetterOwner); err != nil {
		refuse("DeadLetterOwner: %w", err)
	}
	if c.DeadLetterRetention > 0 && c.DeadLetterRedactAfter >= c.DeadLetterRetention {
		refuse("DeadLetterRedactAfter is %s; it must be below DeadLetterRetention, which is %s", c.DeadLetterRedactAfter, c.DeadLetterRetention)
	}
	if c.DeadLetterRetention < 0 || c.DeadLetterRedactAfter < 0 {
		refuse("DeadLetterRetention is %s and DeadLetterRedactAfter %s; they must not be negative", c.DeadLetterRetention, c.DeadLetterRedactAfter)
	}
	for i, b := range c.Gates {
		if b == nil {
			refuse("Gates[%d] is nil", i)
		} else if first := slices.Index(c.Gates, b); first < i {
			refuse("Gates[%d] and Gates[%d] are the same breaker, %.64q", first, i, b.Name())
		}
	}
	if c.TooOld < TooOldDeadLetter || c.TooOld > TooOldRun {
		refuse("TooOld is %d; it must be TooOldDeadLetter or TooOldRun", c.TooOld)
	}
	if c.DeadLetterRoute != "" && !usable(c.DeadLetterRoute) {
		refuse("DeadLetterRoute is %.64q, %d bytes; it must be UTF-8 text of at most %d bytes without NUL, not only white space",
			c.DeadLetterRoute, len(c.DeadLetterRoute), outbox.MaxName)
	}
	return errors.Join(errs...)
}

// maxWorkers leaves two connections for dead letters, probes and checks.
func maxWorkers(maxConns int32) int {
	return max(int(maxConns)-2, 1)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// settings is what semel doctor compares with the database and the broker.
func (c Config) settings(maxConns int32) dedup.Settings {
	tooOld := "dead_letter"
	if c.TooOld == TooOldRun {
		tooOld = "run"
	}
	return dedup.Settings{
		Workers: c.Workers, PoolSize: int(maxConns), Retention: c.Retention, HandlerTimeout: c.HandlerTimeout, MaxPayload: c.MaxPayload,
		Ordering: c.Ordering.String(), TooOld: tooOld,
		RetryAttempts: c.Retry.Attempts, RetryMaxAge: c.Retry.MaxAge, DeadLetterRetention: c.DeadLetterRetention,
	}
}
