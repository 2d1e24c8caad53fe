package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/semel-go/semel/handler"
)

// Preset is what one provider signs, with which secrets, and where it puts what.
// Make one with [Stripe], [GitHub], [StandardWebhooks] or [HMAC]. It is immutable and
// safe for concurrent use.
//
// A preset whose secrets cannot be right is made all the same: [NewHandler] and
// [Preset.Sign] say what is wrong with it.
type Preset struct {
	scheme scheme
	traits traits
	err    error
}

// traits are what a preset says about its provider.
type traits struct {
	name      string
	signature string   // the header that holds it
	headers   []string // worth keeping, in lower case
	types     []string // content types of its bodies
	maxBody   int64
	tolerance time.Duration // 0: no time is signed
	live      bool          // its events say whether they are about real money
}

// scheme is what differs between providers.
type scheme interface {
	// verify returns when the request was signed, the zero time if that is not
	// signed. Every error is a refusal. It must look at nothing in body.
	verify(h http.Header, body []byte) (time.Time, error)

	// read finds what a verified request is about. What it cannot find stays
	// empty.
	read(h http.Header, body []byte) event

	// sign sets on h what verify looks at.
	sign(h http.Header, body []byte, at time.Time) error

	// stable is the part of a payload that is the same in every copy, never nil.
	stable(payload []byte) []byte
}

// event is what a provider says about one callback.
type event struct {
	id, kind string
	key      string
	version  int64
	occurred time.Time
	test     bool // it says that it is not about real money
	greeting bool // it tells of the endpoint itself: nobody's business, unless asked for
}

// Name is the provider's, and the default of [Config.Endpoint].
func (p Preset) Name() string { return p.traits.name }

// Fingerprint returns the part of a message that is the same in every copy the
// provider sends of it, which is all of it for all presets but [Stripe]. A [Handler]
// gives it to the inbox with each message ([handler.Message.Stable]), so whoever
// sets inbox.Config.Fingerprint is whoever wants to compare something else.
func (p Preset) Fingerprint(msg *handler.Message) []byte {
	if p.scheme == nil {
		return whole(msg.Payload)
	}
	return p.scheme.stable(msg.Payload)
}

// whole is a payload all of which is stable. Nil would mean to compare nothing.
func whole(payload []byte) []byte {
	if payload == nil {
		return []byte{}
	}
	return payload
}

// Sign signs r as the provider would at that time, for tests of your own: it sets the
// headers of signature and time, computed over the body and over the headers that are
// signed too, which must be set before. Of several secrets it takes the first. The body
// of r is read and put back.
func (p Preset) Sign(r *http.Request, at time.Time) error {
	if err := p.check(); err != nil {
		return fmt.Errorf("sign a request as %s: %w", p.traits.name, err)
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return fmt.Errorf("sign a request as %s: read its body: %w", p.traits.name, err)
		}
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
		r.ContentLength = int64(len(body))
	}
	if err := p.scheme.sign(r.Header, body, at); err != nil {
		return fmt.Errorf("sign a request as %s: %w", p.traits.name, err)
	}
	return nil
}

// check says what is wrong with a preset.
func (p Preset) check() error {
	if p.scheme == nil {
		return errors.New("preset is empty: make one with Stripe, GitHub, StandardWebhooks or HMAC")
	}
	return p.err
}
