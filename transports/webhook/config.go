package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/handler"
)

// AcceptFunc settles a message while its provider waits, as the Process method of an
// inbox does. A nil error means that it is settled.
type AcceptFunc func(ctx context.Context, msg *handler.Message) (handler.Outcome, error)

// Config holds what is optional. The zero value works.
type Config struct {
	// Endpoint is the name of this endpoint, the first part of every message id: two
	// accounts of one provider that share a consumer need two names, and a name that
	// changes makes resends new messages. At most 64 letters, digits and any of "._-/".
	// Defaults to the preset's name.
	Endpoint string

	// MaxBody is the largest body accepted, in bytes. Defaults to 1 MB, for [GitHub]
	// to 25 MB.
	MaxBody int64

	// Timeout is how long after its arrival a request is answered at the latest,
	// stored or not; it should be well below what the provider allows. Defaults to
	// 5 seconds.
	Timeout time.Duration

	// ReadTimeout is how long a body may take to arrive. It stands in for the
	// ReadTimeout of the server meanwhile. Below Timeout; defaults to half of it.
	ReadTimeout time.Duration

	// RetryAfter is when the provider is asked to come again after what was not
	// stored. Defaults to 30 seconds.
	RetryAfter time.Duration

	// Tolerance is how far the signed time may be from our clock, on either side.
	// Defaults to the preset's, 5 minutes where a time is signed. It is an error
	// where none is.
	Tolerance time.Duration

	// Types, if set, are the types of message that are of interest. All others are
	// answered as if they were stored, and are not; what has none that can be read is
	// stored.
	Types []string

	// Key, if set, returns the ordering key of a message, of which all else is known: a
	// charge and its payment intent, for one, are two objects. Nil: it waits for no
	// other. Defaults to what the preset says. It must not change the message.
	Key func(msg *handler.Message) []byte

	// RequireLive has only events about real money stored; others are answered as if
	// they were. A live endpoint of Stripe Connect gets test events too, and an error
	// for them would count against it. It is an error where a preset has no such mark.
	RequireLive bool

	// Headers are further headers of a request that the message keeps.
	Headers []string

	// Accept, if set, is called in place of Store: to handle a message while the
	// provider waits. It is given what is left of Timeout. What takes longer is
	// answered by an error and left to end; the provider's next try finds it done.
	Accept AcceptFunc

	// Clock tells the time that a signature's is held against. Defaults to
	// [time.Now].
	Clock func() time.Time

	// Logger defaults to [slog.Default].
	Logger *slog.Logger
}

// neverKept are headers that a message must not keep.
var neverKept = [...]string{"authorization", "proxy-authorization", "cookie", "set-cookie"}

func (c Config) withDefaults(of traits) Config {
	setDefault(&c.Endpoint, of.name)
	setDefault(&c.MaxBody, of.maxBody)
	setDefault(&c.Timeout, 5*time.Second)
	setDefault(&c.ReadTimeout, c.Timeout/2)
	setDefault(&c.RetryAfter, 30*time.Second)
	setDefault(&c.Tolerance, of.tolerance)
	c.Types = slices.Clone(c.Types)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate names every impossible value: the field, its bound, the value.
func (c Config) validate(of traits) error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !isName(c.Endpoint) {
		refuse(`Endpoint is %.80q; it must be 1 to 64 letters, digits and any of "._-/"`, c.Endpoint)
	}
	if c.MaxBody < 1 || c.MaxBody > 1<<30 {
		refuse("MaxBody is %d; it must be between 1 and %d", c.MaxBody, 1<<30)
	}
	for _, f := range []struct {
		name       string
		value      time.Duration
		least, top time.Duration
	}{
		{"Timeout", c.Timeout, 10 * time.Millisecond, 5 * time.Minute},
		{"ReadTimeout", c.ReadTimeout, time.Millisecond, 5 * time.Minute},
		{"RetryAfter", c.RetryAfter, time.Second, 24 * time.Hour},
	} {
		if f.value < f.least || f.value > f.top {
			refuse("%s is %s; it must be between %s and %s", f.name, f.value, f.least, f.top)
		}
	}
	if c.ReadTimeout >= c.Timeout {
		refuse("ReadTimeout is %s; it must be below Timeout, which is %s", c.ReadTimeout, c.Timeout)
	}
	switch {
	case of.tolerance == 0 && c.Tolerance != 0:
		refuse("Tolerance is %s; preset %s signs no time", c.Tolerance, of.name)
	case of.tolerance != 0 && (c.Tolerance < time.Second || c.Tolerance > 24*time.Hour):
		refuse("Tolerance is %s; it must be between 1s and 24h", c.Tolerance)
	}
	if c.RequireLive && !of.live {
		refuse("RequireLive is set; events of preset %s do not say whether they are live", of.name)
	}
	for i, kind := range c.Types {
		if kind == "" {
			refuse("Types: the one at %d is empty", i)
		}
	}
	for _, name := range c.Headers {
		if strings.EqualFold(name, of.signature) || slices.Contains(neverKept[:], strings.ToLower(name)) {
			refuse("Headers has %.80q; what authenticates is not kept", name)
		}
	}
	return errors.Join(errs...)
}

// isName reports whether text can be the name of an endpoint. A colon cannot be in it:
// it ends the name in an id.
func isName(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("._-/", c) >= 0:
		default:
			return false
		}
	}
	return len(text) >= 1 && len(text) <= 64
}

// kept are the headers that a message keeps, by the names they have in it and in a
// request.
func (c Config) kept(of traits) []headerName {
	names := slices.Concat(of.headers, []string{handler.HeaderTraceparent, handler.HeaderTracestate, "user-agent", "x-request-id"}, c.Headers)
	var kept []headerName
	for _, name := range names {
		h := headerName{ours: strings.ToLower(name), theirs: http.CanonicalHeaderKey(name)}
		if h.theirs != of.signature && !slices.Contains(kept, h) {
			kept = append(kept, h)
		}
	}
	return kept
}

type headerName struct{ ours, theirs string }

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
