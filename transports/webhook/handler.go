package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/semel-go/semel/handler"
)

// Storer keeps a message, to be handled later. An inbox is one.
//
// A nil error must mean that the message is settled: its provider is told so and
// forgets it. Store must return when ctx ends.
type Storer interface {
	Store(ctx context.Context, msg *handler.Message) (handler.Outcome, error)
}

// errLate is the cause with which storing is cancelled at the end of
// [Config.Timeout].
var errLate = errors.New("the provider was to be answered by now")

// Handler receives the callbacks of one endpoint. It is safe for concurrent use.
type Handler struct {
	scheme  scheme
	traits  traits
	cfg     Config
	kept    []headerName
	accept  AcceptFunc
	counts  counters
	refused murmur // of lines about signatures
	failed  murmur // of lines about storing
}

// NewHandler returns the [http.Handler] of an endpoint: it verifies what a provider
// sends and stores it in in, which may be nil if [Config.Accept] is set. Secrets of the
// wrong form and impossible values are reported all at once, secrets by their place.
func NewHandler(in Storer, preset Preset, cfg Config) (*Handler, error) {
	if err := preset.check(); err != nil {
		return nil, fmt.Errorf("make webhook handler of %s: %w", preset.named(cfg), err)
	}
	cfg = cfg.withDefaults(preset.traits)
	errs := []error{cfg.validate(preset.traits)}
	if s, ok := preset.scheme.(*standard); ok && s.private != nil {
		errs = append(errs, errors.New("a secret is a private key, whsk_; only the sender may have it: give the public one, whpk_"))
	}
	h := &Handler{scheme: preset.scheme, traits: preset.traits, cfg: cfg, kept: cfg.kept(preset.traits)}
	switch {
	case cfg.Accept != nil:
		h.accept = inTime(cfg.Accept)
	case in != nil:
		h.accept = in.Store
	default:
		errs = append(errs, errors.New("nothing takes the messages: give an inbox, or set Accept"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make webhook handler of %s: %w", preset.named(cfg), err)
	}
	return h, nil
}

// ServeHTTP implements [http.Handler]. The package comment says in which order things
// are looked at.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	deadline := time.Now().Add(h.cfg.Timeout)
	body, end := h.read(w, r)
	var msg *handler.Message
	if end == unknown {
		msg, end = h.verified(r, body)
	}
	if end == unknown {
		end = h.settle(r.Context(), deadline, msg)
	}
	h.counts[end].Add(1)
	h.answer(w, end)
}

// verified returns the message of a request whose signature is right. Nothing in the
// body is looked at before.
func (h *Handler) verified(r *http.Request, body []byte) (*handler.Message, ending) {
	signed, err := h.scheme.verify(r.Header, body)
	if err != nil {
		end := refusal(err)
		h.complain(r.Context(), end)
		return nil, end
	}
	if h.cfg.Tolerance > 0 {
		switch age := h.cfg.Clock().Sub(signed); {
		case age > h.cfg.Tolerance:
			h.complain(r.Context(), tooOld)
			return nil, tooOld
		case age < -h.cfg.Tolerance:
			h.complain(r.Context(), tooNew)
			return nil, tooNew
		}
	}
	e := h.scheme.read(r.Header, body)
	switch named := slices.Contains(h.cfg.Types, e.kind); {
	case h.cfg.RequireLive && e.test:
		return nil, notLive
	case len(h.cfg.Types) > 0 && e.kind != "" && !named, e.greeting && !named:
		return nil, ignored // what has no type that can be read is kept: a person must see it
	}
	return h.message(r.Header, body, e, signed), unknown
}

// settle stores a message. A provider that hangs up does not stop that: it will come
// again, and finds that it is done.
func (h *Handler) settle(ctx context.Context, deadline time.Time, msg *handler.Message) ending {
	ctx, cancel := context.WithDeadlineCause(context.WithoutCancel(ctx), deadline, errLate)
	defer cancel()
	began := time.Now()
	id, kind := msg.ID, msg.Type // whoever is late may still have the message
	outcome, err := h.accept(ctx, msg)
	if err == nil && !isOutcome(outcome) { // whoever says so may not have stored it
		err = fmt.Errorf("it was said to be settled as %s, which is no outcome", outcome)
	}
	if err != nil {
		end := failed
		if ctx.Err() != nil {
			end = late
		}
		h.lament(ctx, id, kind, err)
		return end
	}
	h.tell(ctx, id, kind, outcome, time.Since(began))
	return settled + ending(outcome)
}

func isOutcome(o handler.Outcome) bool { return o >= handler.Processed && o <= handler.Mismatch }

// named is what a handler is called in its own errors.
func (p Preset) named(cfg Config) string {
	switch {
	case isName(cfg.Endpoint):
		return "endpoint " + cfg.Endpoint
	case p.traits.name != "":
		return "preset " + p.traits.name
	default:
		return "no preset"
	}
}
