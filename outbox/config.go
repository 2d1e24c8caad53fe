package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/schema"
)

// Quarantine is what becomes of the aggregate of an event that the relay gave
// up on.
type Quarantine int

const (
	// Hold keeps the aggregate's later events back until a person has decided
	// on the one in quarantine. The default.
	Hold Quarantine = iota

	// Continue goes on with the aggregate's later events: consumers see a gap.
	Continue
)

// Done is what becomes of the row of a published event.
type Done int

const (
	// Mark sets published_at. A purge deletes the row later, see
	// [RelayConfig.Retention]. The default.
	Mark Done = iota

	// Delete deletes the row at once: faster, and no history is kept.
	Delete
)

// Quarantined tells of an event that the relay gave up on.
type Quarantined struct {
	Message  *handler.Message // its payload as it is stored, if Err is that it cannot be decoded ([handler.ErrCodec])
	Attempts int              // failed ones, in its whole life
	Err      error
}

// RelayConfig is everything about a relay that has a default. The zero value
// is ready to use.
type RelayConfig struct {
	// Schema is the schema that holds Semel's tables. Defaults to
	// [schema.Default], "semel".
	Schema string

	// Name tells people which relay it is. Defaults to host name and process id.
	Name string

	// Batch is how many events are read, and published, at once. Defaults to 100.
	Batch int

	// Window is how many events of one aggregate type a publisher that does not
	// keep order by itself ([handler.OrderedPublisher]) may have unconfirmed, one
	// of each aggregate. Defaults to 1,000.
	//
	// A publisher that sends fewer at once ([handler.LimitedPublisher]) is given no
	// more than that, shared by the types that have something to publish.
	Window int

	// Lease is how long shards stay a relay's own after it last said that it is
	// alive: how long its events wait after it was killed. Defaults to 60 s.
	Lease time.Duration

	// AttemptTimeout bounds one attempt to publish. Defaults to 5 s.
	AttemptTimeout time.Duration

	// RetryDelay and RetryMaxDelay shape the pause after a failed attempt: after
	// the n-th it is drawn evenly from 0 to min(RetryMaxDelay, RetryDelay·2ⁿ).
	// Default to 1 s and 30 s.
	RetryDelay    time.Duration
	RetryMaxDelay time.Duration

	// MaxAge is how long after its first failed attempt an event goes into
	// quarantine. Only a failed attempt puts it there: an outage of the broker
	// is none. Defaults to 24 h.
	MaxAge time.Duration

	// Poll is how long at most an event waits for a relay at rest that nobody
	// woke. Defaults to 1 s.
	Poll time.Duration

	// MaxBlocked is how many aggregates may be held back at once. At more the
	// relay reads no new events until some go on. Defaults to 1,000.
	MaxBlocked int

	// StatementTimeout bounds each statement of the relay. Defaults to 10 s.
	StatementTimeout time.Duration

	// Quarantine is what becomes of the aggregate of an event that the relay
	// gave up on. Defaults to [Hold].
	Quarantine Quarantine

	// Done is what becomes of published rows. Defaults to [Mark].
	Done Done

	// Retention is how long published and discarded events stay before the
	// relay purges them: now and then, in small steps, and one relay of all that
	// run. Nothing is recognised by these rows, they are for people who look up
	// what was sent; with [Delete] only discarded ones are left. Negative, as
	// [KeepForever], purges nothing. Defaults to 7 days.
	Retention time.Duration

	// Archive, if set, is where events go before the purge deletes them, see
	// [Store.Purge]. While it cannot be written to, nothing is purged; the log
	// and [Stats] say so, and the relay tries again by itself.
	Archive ArchiveStore

	// ArchiveRetention is how long the archive is to keep an object, as its manifest
	// says. Defaults to ten years.
	ArchiveRetention time.Duration

	// Codec decodes payloads that were written with one, see [Writer.WithCodec],
	// before Validate and the publisher see them, in at most half of AttemptTimeout.
	// An event that it cannot decode holds its aggregate back: without an attempt
	// while its error says that the key cannot be had now ([handler.Unavailable]), in
	// quarantine at once where it says that none will help ([handler.Permanent]),
	// else, and without a Codec, as a failed attempt.
	Codec handler.Codec

	// Validate, if set, is asked before an event is published. An error marked by
	// [handler.Permanent] (an unknown schema version, for one) puts it into
	// quarantine at once; any other is a failed attempt. It must be quick, and
	// safe for concurrent use.
	Validate func(*handler.Message) error

	// OnQuarantine, if set, is told of each event that the relay gave up on. It
	// must be quick, and safe for concurrent use.
	OnQuarantine func(context.Context, Quarantined)

	// Logger gets what an operator should see. Defaults to [slog.Default].
	Logger *slog.Logger
}

// minConnections is how many connections a relay uses at once: it reads,
// it notes what was published, it holds its leases, it listens.
const minConnections = 4

func (c RelayConfig) withDefaults() RelayConfig {
	setTo(&c.Schema, schema.Default)
	setTo(&c.Batch, 100)
	setTo(&c.Window, 1000)
	setTo(&c.Lease, time.Minute)
	setTo(&c.AttemptTimeout, 5*time.Second)
	setTo(&c.RetryDelay, time.Second)
	setTo(&c.RetryMaxDelay, 30*time.Second)
	setTo(&c.MaxAge, 24*time.Hour)
	setTo(&c.Poll, time.Second)
	setTo(&c.MaxBlocked, 1000)
	setTo(&c.Retention, 7*24*time.Hour)
	setTo(&c.ArchiveRetention, defaultArchiveRetention)
	setTo(&c.StatementTimeout, 10*time.Second)
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown host"
		}
		c.Name = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c RelayConfig) validate(maxConns int32) error {
	errs := []error{schema.CheckName(c.Schema)}
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, f := range [...]struct {
		name     string
		value    int
		from, to int
	}{
		{"Batch", c.Batch, 1, 10_000},
		{"Window", c.Window, 1, 10_000},
		{"MaxBlocked", c.MaxBlocked, 1, 1_000_000},
	} {
		if f.value < f.from || f.value > f.to {
			refuse("%s is %d; it must be from %d to %d", f.name, f.value, f.from, f.to)
		}
	}
	for _, f := range [...]struct {
		name  string
		value time.Duration
	}{
		{"Lease", c.Lease},
		{"AttemptTimeout", c.AttemptTimeout},
		{"RetryDelay", c.RetryDelay},
		{"RetryMaxDelay", c.RetryMaxDelay},
		{"MaxAge", c.MaxAge},
		{"Poll", c.Poll},
		{"StatementTimeout", c.StatementTimeout},
	} {
		if f.value < time.Millisecond || f.value > 365*24*time.Hour {
			refuse("%s is %s; it must be from 1ms to a year", f.name, f.value)
		}
	}
	if c.RetryMaxDelay < c.RetryDelay {
		refuse("RetryMaxDelay is %s; it must not be below RetryDelay, which is %s", c.RetryMaxDelay, c.RetryDelay)
	}
	if c.Lease < 2*c.AttemptTimeout {
		refuse("Lease is %s; it must be at least twice AttemptTimeout, which is %s: else an owner could not send for most of it", c.Lease, c.AttemptTimeout)
	}
	if c.MaxAge < c.AttemptTimeout+c.RetryMaxDelay {
		refuse("MaxAge is %s; it must hold one attempt and one pause, %s", c.MaxAge, c.AttemptTimeout+c.RetryMaxDelay)
	}
	if maxConns < minConnections {
		refuse("the pool has %d connections; the relay needs %d (raise pool_max_conns)", maxConns, minConnections)
	}
	if c.Retention >= 0 && c.Retention < time.Minute {
		refuse("Retention is %s; it must be at least 1m0s, or KeepForever", c.Retention)
	}
	if c.Quarantine < Hold || c.Quarantine > Continue {
		refuse("Quarantine is %d; it must be Hold or Continue", c.Quarantine)
	}
	if c.Done < Mark || c.Done > Delete {
		refuse("Done is %d; it must be Mark or Delete", c.Done)
	}
	if c.ArchiveRetention < 0 {
		refuse("ArchiveRetention is %s; it must not be negative", c.ArchiveRetention)
	}
	if c.Archive != nil && c.Done == Delete {
		refuse("Done is Delete: an event that is deleted at once never comes to the Archive; leave Done at Mark, or Archive out")
	}
	if c.Archive != nil && c.Retention < 0 {
		refuse("Retention is KeepForever: what is never purged never comes to the Archive; say after what time it does, or leave Archive out")
	}
	return errors.Join(errs...)
}

func setTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
