package httpbreaker

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/handler"
)

// exchange is one request and its answer. The call that it is to the breaker ends
// with the answer's body: a host that sends headers and then stalls does not do its
// part.
type exchange struct {
	caller  *http.Request // as it came
	breaker *breaker.Breaker
	call    *breaker.Call
	upload  *upload // nil: its body cannot fail

	ctx    context.Context //nolint:containedctx // it lives as long as the request
	cancel context.CancelCauseFunc
	timer  *time.Timer // nil: no timeout

	connecting, connected atomic.Bool // as net/http tells
	answered, reading     atomic.Bool // the headers are here; somebody waits for the body
	failed, refused       bool        // what the status meant

	over     sync.Once
	err      error // of reading the body, once over
	returned bool
}

// begin returns the request to send.
func (x *exchange) begin(timeout time.Duration) *http.Request {
	x.ctx, x.cancel = context.WithCancelCause(x.caller.Context())
	if timeout > 0 {
		x.timer = time.AfterFunc(timeout, x.expire)
	}
	traced := httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{
		GetConn: func(string) { x.connecting.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { x.connected.Store(true) },
	})
	out := x.caller.WithContext(traced)
	sendOnce(out)
	if out.Body != nil && out.Body != http.NoBody && out.GetBody == nil {
		x.upload = &upload{ReadCloser: out.Body}
		out.Body = x.upload
	}
	sendInTime(out)
	return out
}

// expire ends what takes too long. That nobody reads the body is no fault of who
// sent it.
func (x *exchange) expire() {
	if x.answered.Load() && !x.reading.Load() {
		_ = x.call.Done(x.caller.Context(), nil)
	}
	x.cancel(errTimeout)
}

// stop lets go of what the exchange held.
func (x *exchange) stop() {
	if x.timer != nil {
		x.timer.Stop()
	}
	x.cancel(nil)
}

// unlessReturned is for a base that panics, or ends the goroutine.
func (x *exchange) unlessReturned() {
	if !x.returned {
		x.call.Abort()
		x.stop()
	}
}

// fail ends an exchange without an answer. Impossible: the request itself is at fault.
func (x *exchange) fail(err error, impossible bool) error {
	x.returned = true
	defer x.stop()
	e := x.describe(err)
	e.notSent = x.connecting.Load() && !x.connected.Load()
	switch {
	case x.caller.Context().Err() != nil:
	case impossible:
		e.notSent = true
		x.call.Withdraw()
		return handler.Permanent(e)
	case x.upload != nil && x.upload.failed.Load(), errors.Is(err, errLate):
		x.call.Withdraw() // no fault of the host's
		return e
	}
	return x.judge(e)
}

// answer looks at the headers, and leaves the rest to the body.
func (x *exchange) answer(resp *http.Response) {
	x.returned = true
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	resp.Request = x.caller
	ctx := x.caller.Context()
	if !isSuccess(resp.StatusCode) {
		resp.Request = x.caller.WithContext(context.WithValue(ctx, exchangeKey{}, x)) // for Check
	}
	switch {
	case isFailure(resp.StatusCode):
		x.failed = true
		if delay, ok := retryAfter(resp.Header, time.Now()); ok {
			x.breaker.HoldUntil(time.Now().Add(delay))
		}
		_ = x.call.Done(ctx, statusError(resp))

	case isRefusal(resp.StatusCode):
		x.refused = true
		_ = x.call.Done(ctx, breaker.Refused(statusError(resp)))

	case resp.StatusCode == http.StatusSwitchingProtocols:
		_ = x.call.Done(ctx, nil)
		if x.timer != nil {
			x.timer.Stop() // it is a connection now
		}
		if conn, ok := resp.Body.(io.ReadWriteCloser); ok {
			resp.Body = &upgraded{ReadWriteCloser: conn, x: x}
			return
		}
	}
	if resp.Body == http.NoBody {
		_ = x.finish(nil)
		return
	}
	resp.Body = &body{ReadCloser: resp.Body, x: x}
	x.answered.Store(true)
}

// finish ends the exchange with the end of the answer, nil if it came whole or its
// reader wants no more.
func (x *exchange) finish(err error) error {
	x.over.Do(func() {
		if err == nil {
			_ = x.call.Done(x.caller.Context(), nil)
		} else {
			x.err = x.judge(x.describe(err))
		}
		x.stop()
	})
	if x.err == nil { // read after it was closed
		return err
	}
	return x.err
}

// judge ends the call with an error, and marks it as one for the engine.
func (x *exchange) judge(e *RequestError) error {
	err := x.call.Done(x.caller.Context(), e)
	if breaker.Of(err) == x.breaker {
		return handler.Unavailable(err)
	}
	return err
}

// describe says whose error it is, and that it was the timeout if it was.
func (x *exchange) describe(err error) *RequestError {
	if x.caller.Context().Err() == nil && errors.Is(context.Cause(x.ctx), errTimeout) {
		err = errTimeout
	}
	return &RequestError{Target: targetOf(x.caller), Err: err}
}

type exchangeKey struct{}

// exchangeOf finds the exchange of an answer that is no success.
func exchangeOf(resp *http.Response) *exchange {
	if resp.Request == nil {
		return nil
	}
	x, _ := resp.Request.Context().Value(exchangeKey{}).(*exchange)
	return x
}
