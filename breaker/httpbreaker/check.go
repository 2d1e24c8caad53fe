package httpbreaker

import (
	"io"
	"net/http"
	"time"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/handler"
)

// Check returns nil for an answer 2xx, whose body is the caller's to read and close.
// Of any other it reads and closes the body, and returns a [StatusError]
//
//   - that may be tried again for 408, 409, 425, 429 and 5xx, when Retry-After says
//     so if it does ([handler.RetryAfter], 24 hours at most); for 429 and 5xx but
//     501 and 505 in a [breaker.FailureError], if a [Transport] sent the request,
//     and for these 5xx marked by [handler.Unavailable];
//   - marked by [handler.Permanent] for all else, redirects included; but 401 and
//     403 as a [breaker.FailureError] while so many of them keep the breaker open.
func Check(resp *http.Response) error {
	status := resp.StatusCode
	if isSuccess(status) {
		return nil
	}
	said := statusError(resp)
	var err error = said
	failed := isFailure(status)
	if x := exchangeOf(resp); x != nil {
		failed = x.failed || x.refused && x.breaker.State() != breaker.Closed
		if failed {
			err = &breaker.FailureError{Breaker: x.breaker, Err: err}
		}
	}
	said.Body = excerpt(resp.Body)
	if !failed && !isRetryable(status) {
		return handler.Permanent(err)
	}
	if delay, ok := retryAfter(resp.Header, time.Now()); ok {
		err = handler.RetryAfter(delay, err)
	}
	if failed && status != http.StatusTooManyRequests {
		err = handler.Unavailable(err)
	}
	return err
}

// excerpt reads the beginning of a body. It reads on so that its connection can be
// used again, if that is not much.
func excerpt(body io.ReadCloser) []byte {
	if body == nil {
		return nil
	}
	const kept, most = 4 << 10, 64 << 10
	beginning, _ := io.ReadAll(io.LimitReader(body, kept))
	_, _ = io.CopyN(io.Discard, body, most-kept)
	_ = body.Close()
	return beginning
}

// isSuccess includes 101: the answer is a connection then.
func isSuccess(status int) bool {
	return status/100 == 2 || status == http.StatusSwitchingProtocols
}

// isFailure reports a status that says the host does not do its part. 501 and 505
// say that it never will what was asked.
func isFailure(status int) bool {
	switch status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	default:
		return status >= 500
	}
}

func isRefusal(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

func isRetryable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	default:
		return status >= 500
	}
}
