package httpbreaker_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/breaker/httpbreaker"
)

// unaware is a context whose deadline has passed, and that has not noticed: what a
// process sees that was stopped for long.
type unaware struct {
	context.Context
	deadline time.Time
}

func (c unaware) Deadline() (time.Time, bool) { return c.deadline, true }

// A process is stopped between its last look at the clock and its call, and
// wakes up when another one has made that. It sends nothing any more, and the host is
// not to blame.
func TestTransport_SendsNothingLate(t *testing.T) {
	t.Parallel()

	var served, whole atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		served.Add(1)
		if _, err := io.ReadAll(r.Body); err == nil {
			whole.Add(1)
		}
	}))
	t.Cleanup(server.Close)
	transport := httpbreaker.New(httpbreaker.Config{Breaker: breaker.Config{Failures: 1}})
	t.Cleanup(transport.CloseIdleConnections)
	post := func(deadline time.Time) error {
		r, err := http.NewRequestWithContext(unaware{t.Context(), deadline}, http.MethodPost, server.URL, strings.NewReader("one invoice"))
		require.NoError(t, err)
		resp, err := transport.RoundTrip(r)
		if err == nil {
			require.NoError(t, resp.Body.Close())
		}
		return err
	}

	require.NoError(t, post(time.Now().Add(time.Minute)))
	require.Equal(t, int64(1), whole.Load())
	err := post(time.Now().Add(-time.Second))
	require.ErrorContains(t, err, "this process stood still")
	require.Nil(t, breaker.Of(err))
	require.Equal(t, breaker.Closed, transport.Breaker(strings.TrimPrefix(server.URL, "http://")).State())
	require.Equal(t, int64(1), whole.Load(), "what came of it is not a whole request")
}
