package httpbreaker

import (
	"net/http"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/handler"
)

// Transport is an [http.RoundTripper] with a breaker for each host. It is safe for
// concurrent use.
//
// RoundTrip returns every answer as it is: [Check] makes an error of one that is no
// success. Its own errors are
//
//   - a [breaker.OpenError]: nothing was sent, wait;
//   - a [RequestError] in a [breaker.FailureError], marked by [handler.Unavailable]:
//     no answer, or not the whole of it, which is then the error of reading the body;
//   - a [RequestError] alone when its caller cancelled it, or the request is impossible.
type Transport struct {
	cfg      Config
	breakers *breakers
}

// New returns a transport.
func New(cfg Config) *Transport {
	cfg = cfg.withDefaults()
	return &Transport{cfg: cfg, breakers: &breakers{cfg: cfg, byName: make(map[string]*dependency)}}
}

// Client returns a client that sends by t and hands redirects back instead of
// following them. It has no timeout of its own.
func (t *Transport) Client() *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Breaker returns the breaker of that name (see [Config]), also before there was a
// request: for the gates of a consumer. It is kept from then on.
func (t *Transport) Breaker(name string) *breaker.Breaker {
	return t.breakers.of(name, true).breaker
}

// Stats returns a snapshot of each breaker, by name.
func (t *Transport) Stats() []breaker.Stats { return t.breakers.stats() }

// CloseIdleConnections closes those of Base, if it can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.cfg.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	d := t.breakers.of(t.cfg.Name(req), false)
	call, err := d.admit(handler.CauseFrom(req.Context()))
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper must
		}
		return nil, err
	}
	x := &exchange{caller: req, breaker: d.breaker, call: call}
	defer x.unlessReturned()
	resp, err := t.cfg.Base.RoundTrip(x.begin(t.cfg.RequestTimeout))
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err != nil {
		_, validates := t.cfg.Base.(*http.Transport)
		return nil, x.fail(err, validates && !x.connecting.Load())
	}
	x.answer(resp)
	return resp, nil
}

// admit asks the breaker, and the budget if it is a retry. A trial needs no token:
// there is only one.
func (d *dependency) admit(cause *handler.Cause) (*breaker.Call, error) {
	retry := cause != nil && cause.Attempt > 1
	if retry && d.breaker.State() == breaker.Closed && !d.budget.Take() {
		return nil, &breaker.OpenError{Breaker: d.breaker, RetryIn: d.budget.RetryIn(), Err: breaker.ErrBudget}
	}
	call, err := d.breaker.Start()
	if err == nil && !retry {
		d.budget.First()
	}
	return call, err
}
