package httpbreaker

import (
	"maps"
	"net/http"
)

// sendOnce keeps net/http from resending a request that is not idempotent by its
// method: it takes one of these headers for leave to do so, if it is written just
// like this (Request.isReplayable). Servers do not mind how it is written. That the
// body may be read again stays: what was certainly not written may be resent.
func sendOnce(req *http.Request) {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return
	}
	cloned := false
	for _, key := range [...][2]string{{"Idempotency-Key", "idempotency-key"}, {"X-Idempotency-Key", "x-idempotency-key"}} {
		values, ok := req.Header[key[0]]
		if !ok {
			continue
		}
		if !cloned { // the caller's is not ours to write to
			req.Header = maps.Clone(req.Header)
			cloned = true
		}
		delete(req.Header, key[0])
		req.Header[key[1]] = values
	}
}
