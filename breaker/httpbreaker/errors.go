package httpbreaker

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// RequestError is the error of a request that got no answer, or not the whole of it.
type RequestError struct {
	Target
	Err     error
	notSent bool
}

func (e *RequestError) Error() string { return e.String() + ": " + e.Err.Error() }
func (e *RequestError) Unwrap() error { return e.Err }

// NotSent reports that no byte was written: there was no connection to write to.
func (e *RequestError) NotSent() bool { return e.notSent }

// StatusError is the error of an answer that is no success.
type StatusError struct {
	Target
	StatusCode int

	// Body is how the answer begins, at most 4 KB of it: often the reason. It is in
	// no text of this error, since it may repeat what was sent; whoever knows what
	// the provider writes there can add it.
	Body []byte
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s: status %d", e.Target, e.StatusCode)
	if name := http.StatusText(e.StatusCode); name != "" {
		text += " " + name
	}
	return text
}

// Kind is what [breaker.Stats] tell of it.
func (e *StatusError) Kind() string { return fmt.Sprintf("status %d", e.StatusCode) }

func statusError(resp *http.Response) *StatusError {
	return &StatusError{Target: targetOf(resp.Request), StatusCode: resp.StatusCode}
}

// Target is where a request went, without what may be secret in it.
type Target struct{ Method, Host, Path string }

func targetOf(req *http.Request) Target {
	if req == nil || req.URL == nil {
		return Target{}
	}
	t := Target{Method: req.Method, Host: req.URL.Host, Path: req.URL.EscapedPath()}
	if t.Method == "" {
		t.Method = http.MethodGet
	}
	const longest = 200
	if len(t.Path) > longest {
		t.Path = t.Path[:longest] + "..."
	}
	return t
}

// String is method, host and path.
func (t Target) String() string { return strings.TrimSpace(t.Method + " " + t.Host + t.Path) }

var errNoResponse = errors.New("the base transport returned neither an answer nor an error")

// errTimeout ends a request after RequestTimeout.
var errTimeout = timeoutError{}

type timeoutError struct{}

func (timeoutError) Error() string { return "no whole answer in time" }
func (timeoutError) Timeout() bool { return true }
