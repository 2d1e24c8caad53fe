package calls

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	defaultTimeout = 10 * time.Second
	defaultKeyTTL  = 24 * time.Hour

	// maxStep and maxKey are in bytes.
	maxStep = 255
	maxKey  = 255
)

// Func makes the call, with key as its idempotency key. result is kept, nil and
// empty told apart. What an error means is said in the documentation of the package.
//
// It must obey ctx: after its end it must send nothing any more.
type Func func(ctx context.Context, key string) (result []byte, err error)

// Answer is whether a call was done.
type Answer int

// The answers of [Options.WasItDone].
const (
	// Unclear: the provider cannot tell. A person is asked, unless nothing was sent.
	Unclear Answer = iota
	// No: it was not done, and never will be.
	No
	// Yes: it was done.
	Yes
)

// Options is everything about one call that has a default.
type Options struct {
	// Timeout is how long the call may take, also one of WasItDone; the context ends
	// then. It should be longer than the provider can take to do the work.
	// Defaults to 10 s.
	Timeout time.Duration

	// KeyTTL is how long the provider remembers an idempotency key: for so long a
	// call whose end is unknown is repeated under the same one. Negative: it has no
	// such keys. Defaults to 24 h.
	KeyTTL time.Duration

	// WasItDone asks the provider whether a call was done whose end is unknown, and
	// that cannot be repeated under its key; with Yes it returns the result too. It
	// is asked when the call has ended for certain ([Call.Deadline]). After an error
	// it is asked again with the next attempt. Nil: a person is asked.
	WasItDone func(ctx context.Context, c Call) (result []byte, answer Answer, err error)

	// AskFirst has WasItDone asked before anything is sent, the first time too, and
	// never repeats a call without: for providers that have no idempotency keys but
	// can be asked for our own number of the thing.
	AskFirst bool

	// Key derives the idempotency key from the other fields of the call; it must give
	// the same for the same. 1 to 255 printable ASCII characters. Nil: a hash of
	// consumer, message id, step and generation, in the form of a UUID, which holds
	// nothing of the message.
	Key func(c Call) string
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.KeyTTL == 0 {
		o.KeyTTL = defaultKeyTTL
	}
	return o
}

// Check reports what [Ledger.Do] would refuse of a step and its options, so that a
// program can find out when it starts.
func (l *Ledger) Check(step string, o Options) error {
	o = o.withDefaults()
	var errs []error
	if err := checkStep(step); err != nil {
		errs = append(errs, err)
	}
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("its timeout is %s; it must be positive", o.Timeout))
	}
	whole := o.Timeout + l.cfg.Grace
	if l.cfg.Lease > 0 && l.cfg.Lease < whole {
		errs = append(errs, fmt.Errorf("its timeout %s and the grace %s are longer than the lease %s: make the lease longer or the timeout shorter", o.Timeout, l.cfg.Grace, l.cfg.Lease))
	}
	if o.KeyTTL > 0 && o.KeyTTL <= whole {
		errs = append(errs, fmt.Errorf("the provider remembers keys for %s, which is no longer than one call may take, %s: say with a negative one that it has none", o.KeyTTL, whole))
	}
	if o.AskFirst && o.WasItDone == nil {
		errs = append(errs, errors.New("it is to be asked for first, but nothing is given to ask with"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("call %.64q: %w", step, err)
	}
	return nil
}

func checkStep(step string) error {
	switch {
	case strings.TrimSpace(step) == "":
		return errors.New("a step needs a name")
	case len(step) > maxStep:
		return fmt.Errorf("the name of a step has %d bytes, at most %d are allowed", len(step), maxStep)
	case !utf8.ValidString(step) || strings.IndexByte(step, 0) >= 0:
		return errors.New("the name of a step must be UTF-8 without NUL")
	}
	return nil
}
