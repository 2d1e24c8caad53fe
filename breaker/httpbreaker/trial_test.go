package httpbreaker_test

import (
	"io"
	"log"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/breaker/httpbreaker"
)

var discardLog = log.New(io.Discard, "", 0)

// The answer of a trial is never read nor closed: a mistake of its caller, for which
// neither the breaker may be stuck nor the host be blamed.
func TestTrial_BodyIsNeverClosed(t *testing.T) {
	t.Parallel()

	var down atomic.Bool
	down.Store(true)
	b := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(500)
		}
		for chunk := make([]byte, 1<<16); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}, httpbreaker.Config{Breaker: soon, RequestTimeout: 2 * time.Second})
	for range 3 {
		require.Error(t, b.post(t))
	}
	down.Store(false)
	b.mayTry(t)
	resp, err := b.client.Get(b.url)
	require.NoError(t, err)
	require.Equal(t, breaker.HalfOpen, b.breaker.State())
	require.Eventually(t, func() bool { return b.breaker.State() == breaker.Closed }, time.Minute, time.Millisecond)
	require.EqualValues(t, 3, b.breaker.Stats().Failures)
	_, err = io.Copy(io.Discard, resp.Body)
	require.ErrorContains(t, err, "no whole answer in time")
	require.NoError(t, resp.Body.Close())
}

// Case P9: a base transport panics in a trial; the next one may try.
func TestTrial_BasePanics(t *testing.T) {
	t.Parallel()

	panics := true
	b := setupURL(t, "http://bank", httpbreaker.Config{Breaker: soon, Base: roundTrip(func(*http.Request) (*http.Response, error) {
		if panics {
			panic("broken")
		}
		return &http.Response{StatusCode: 500}, nil
	})})
	for range 5 {
		require.PanicsWithValue(t, "broken", func() { _ = b.post(t) })
	}
	require.Equal(t, breaker.Closed, b.breaker.State(), "it says nothing of the host")
	panics = false
	for range 3 {
		require.Error(t, b.post(t))
	}
	panics = true
	for range 3 {
		b.mayTry(t)
		require.PanicsWithValue(t, "broken", func() { _ = b.post(t) })
		require.Equal(t, breaker.Open, b.breaker.State())
	}
}

// A host comes back while many want it: one at a time tries, then all go on.
func TestTrial_ManyAtOnce(t *testing.T) {
	t.Parallel()

	var down atomic.Bool
	var trying, most atomic.Int64
	down.Store(true)
	b := setupURL(t, "http://bank", httpbreaker.Config{Breaker: soon, Base: roundTrip(func(*http.Request) (*http.Response, error) {
		if !down.Load() {
			return &http.Response{StatusCode: 204}, nil
		}
		n := trying.Add(1)
		defer trying.Add(-1)
		most.Store(max(most.Load(), n))
		return &http.Response{StatusCode: 503}, nil
	})})
	for range 3 {
		require.Error(t, b.post(t))
	}
	require.EqualValues(t, 1, most.Load())
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			for b.post(t) != nil {
				if b.breaker.Stats().Trials > 20 {
					down.Store(false)
				}
				select {
				case <-b.breaker.Changed():
				case <-time.After(b.breaker.RetryIn() + time.Millisecond):
				}
			}
		})
	}
	callers.Wait()
	require.Equal(t, breaker.Closed, b.breaker.State())
	require.EqualValues(t, 1, most.Load(), "one at a time")
}
