package webhook

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/breaker/httpbreaker"
	"github.com/semel-go/semel/handler"
)

var _ handler.LimitedPublisher = (*Publisher)(nil)

// ErrBehindFailed is the error of a message that was not sent because an earlier one of
// its key in the same call failed. It is not permanent.
var ErrBehindFailed = errors.New("an earlier message of its key failed")

// Publisher posts messages to one endpoint, signed as Standard Webhooks has it. Make one
// with [NewPublisher]. It is safe for concurrent use.
type Publisher struct {
	to     address
	cfg    PublisherConfig
	signer *standard
	http   *httpbreaker.Transport
	slots  chan struct{} // one for each request that is out
	health health
}

// NewPublisher returns a publisher to url: https, or http to this machine itself. Its
// secret is whsec_ and 24 to 64 bytes in base64, which the receiver has too, or the
// private key of a pair, whsk_. A user and password in url are sent as Authorization.
// Nothing that is in url but scheme, host and path is in any error.
func NewPublisher(url, secret string, cfg PublisherConfig) (*Publisher, error) {
	cfg = cfg.withDefaults()
	signer := &standard{}
	to, err := parseAddress(url, cfg.AllowPlain)
	if err = errors.Join(err, signer.addSigning(slices.Concat([]string{secret}, cfg.MoreSecrets)), cfg.validate()); err != nil {
		return nil, fmt.Errorf("make webhook publisher: %w", err)
	}
	return &Publisher{
		to: to, cfg: cfg, signer: signer, slots: make(chan struct{}, cfg.Concurrency),
		http: httpbreaker.New(httpbreaker.Config{
			Base:           cfg.Transport,
			RequestTimeout: -1, // each request has one of its own, see send
			Name:           func(*http.Request) string { return to.readable },
			// Only refusals of our signature open it. What else fails is judged by whom it
			// befalls, see health: one event that always fails must not keep the others.
			Breaker: breaker.Config{Failures: math.MaxUint32},
			Logger:  cfg.Logger,
		}),
	}, nil
}

// AtOnce implements [handler.LimitedPublisher].
func (p *Publisher) AtOnce() int { return p.cfg.Concurrency }

// CloseIdleConnections closes those that wait for the next request, if Transport can.
func (p *Publisher) CloseIdleConnections() { p.http.CloseIdleConnections() }

// Publish implements [handler.Publisher]. Messages of one key are sent one after the
// other, each when the one before it was confirmed; those behind one that fails are not
// sent ([ErrBehindFailed]). Others are sent at the same time.
//
// The package comment says what each answer comes to. An error that
// [handler.IsUnavailable] recognises says that the endpoint is away, not that it minds
// the message.
func (p *Publisher) Publish(ctx context.Context, msgs []*handler.Message) []error {
	errs := make([]error, len(msgs))
	if len(msgs) == 1 {
		errs[0] = p.publish(ctx, msgs[0])
		return errs
	}
	var sending sync.WaitGroup
	for _, line := range linesOf(msgs) {
		sending.Go(func() {
			failed := false
			for _, i := range line {
				if failed {
					errs[i] = about(msgs[i], ErrBehindFailed)
					continue
				}
				errs[i] = p.publish(ctx, msgs[i])
				failed = errs[i] != nil
			}
		})
	}
	sending.Wait()
	return errs
}

// linesOf are the places of messages that wait for each other. Those without a key wait
// for none.
func linesOf(msgs []*handler.Message) [][]int {
	var lines [][]int
	byKey := map[string]int{}
	for i, msg := range msgs {
		if msg == nil || len(msg.Key) == 0 {
			lines = append(lines, []int{i})
			continue
		}
		at, known := byKey[string(msg.Key)]
		if !known {
			at = len(lines)
			byKey[string(msg.Key)] = at
			lines = append(lines, nil)
		}
		lines[at] = append(lines[at], i)
	}
	return lines
}

func (p *Publisher) publish(ctx context.Context, msg *handler.Message) error {
	if msg == nil {
		return handler.Permanent(errors.New("publish to a webhook: message is nil"))
	}
	r, err := p.request(msg)
	if err != nil {
		return about(msg, handler.Permanent(err))
	}
	if err := p.enter(ctx); err != nil {
		return about(msg, handler.Unavailable(err))
	}
	defer func() { <-p.slots }()
	if wait := p.health.holds(time.Now()); wait > 0 {
		return about(msg, handler.Unavailable(handler.RetryAfter(wait,
			fmt.Errorf("%s asked for a pause, which ends in %s: nothing was sent", p.to.readable, wait.Round(time.Millisecond)))))
	}
	return about(msg, p.send(ctx, r, msg))
}

// enter waits for a slot. It leaves half of the time for the request: one that came
// with less would tell nothing about the endpoint.
func (p *Publisher) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	default:
	}
	var late <-chan time.Time
	if deadline, ok := ctx.Deadline(); ok {
		timer := time.NewTimer(time.Until(deadline) / 2)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-late:
		return fmt.Errorf("wait for one of %d requests to end: give it fewer messages at once, or make Concurrency larger", p.cfg.Concurrency)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errSlow ends a request that takes too long.
var errSlow = errors.New("request timeout")

// send makes one request, and what its answer means.
func (p *Publisher) send(ctx context.Context, r *http.Request, msg *handler.Message) error {
	timeout := p.cfg.RequestTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline)*9/10)
	}
	if err := p.signer.signAll(r.Header, msg.Payload, p.cfg.Clock()); err != nil {
		return handler.Permanent(err)
	}
	timed, cancel := context.WithTimeoutCause(ctx, timeout, errSlow)
	defer cancel()
	resp, err := p.http.RoundTrip(r.WithContext(timed))
	if err == nil {
		err = read(resp)
	}
	if lost, ok := lostIn(err); ok {
		switch {
		case ctx.Err() != nil:
			return handler.Unavailable(fmt.Errorf("%s: %w", lost.Target, context.Cause(ctx)))
		case errors.Is(context.Cause(timed), errSlow):
			slow := *lost // others may have it too
			slow.Err = fmt.Errorf("no whole answer in %s", timeout.Round(time.Millisecond))
			err = &slow
		}
	}
	return p.judge(msg, err)
}

// about says which message an error is about.
func about(msg *handler.Message, err error) error {
	if err == nil {
		return nil
	}
	if msg == nil {
		return fmt.Errorf("publish to a webhook: %w", err)
	}
	return fmt.Errorf("publish message %.255q: %w", msg.ID, err)
}
