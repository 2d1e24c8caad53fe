package httpbreaker_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/breaker/httpbreaker"
	"github.com/semel-go/semel/handler"
)

func TestCheck_Kinds(t *testing.T) {
	t.Parallel()

	type kind struct{ ok, retryable, counts bool }
	permanent, retryable, failure := kind{}, kind{retryable: true}, kind{retryable: true, counts: true}
	tests := map[int]kind{
		200: {ok: true}, 201: {ok: true}, 204: {ok: true},
		301: permanent, 302: permanent, 304: permanent, 307: permanent,
		400: permanent, 401: permanent, 403: permanent, 404: permanent, 407: permanent, 410: permanent, 422: permanent,
		408: retryable, 409: retryable, 425: retryable, 501: retryable, 505: retryable,
		429: failure, 500: failure, 502: failure, 503: failure, 504: failure, 599: failure,
	}
	for status, want := range tests {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()

			b := setup(t, answer(status, "Location", "/elsewhere"), httpbreaker.Config{})
			for range 3 {
				err := b.post(t)
				if want.ok {
					require.NoError(t, err)
					continue
				}
				require.Equal(t, !want.retryable, handler.IsPermanent(err))
				require.Equal(t, want.counts && status != 429, handler.IsUnavailable(err))
				require.Equal(t, want.counts, breaker.Of(err) == b.breaker)
				var told *httpbreaker.StatusError
				require.ErrorAs(t, err, &told)
				require.Equal(t, status, told.StatusCode)
				host := strings.TrimPrefix(b.url, "http://")
				require.EqualError(t, err, strings.TrimSpace("POST "+host+"/charges: status "+strconv.Itoa(status)+" "+http.StatusText(status)))
			}
			if want.counts {
				require.Equal(t, breaker.Open, b.breaker.State())
				err := b.post(t)
				require.ErrorIs(t, err, breaker.ErrOpen)
				require.Same(t, b.breaker, breaker.Of(err))
				require.Equal(t, "status "+strconv.Itoa(status), b.breaker.Stats().LastError)
			} else {
				require.Equal(t, breaker.Closed, b.breaker.State())
			}
		})
	}
}

func TestCheck_AnotherTransportsAnswer(t *testing.T) {
	t.Parallel()

	err := httpbreaker.Check(&http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"7"}}})
	require.EqualError(t, err, ": status 503 Service Unavailable")
	require.True(t, handler.IsUnavailable(err))
	require.Nil(t, breaker.Of(err))
	delay, ok := handler.RetryDelay(err)
	require.True(t, ok)
	require.Equal(t, 7*time.Second, delay)
}

// Check leaves no body behind, and reads no more of it than a connection is worth.
func TestCheck_Body(t *testing.T) {
	t.Parallel()

	for _, size := range []int{10, 1 << 20} {
		rest := strings.NewReader(strings.Repeat("x", size))
		body := &closed{Reader: rest}
		require.Error(t, httpbreaker.Check(&http.Response{StatusCode: 404, Body: body}))
		require.True(t, body.closed)
		require.Equal(t, max(0, size-64<<10), rest.Len())
	}
	err := httpbreaker.Check(&http.Response{StatusCode: 422, Body: io.NopCloser(strings.NewReader(strings.Repeat("no", 9000)))})
	var told *httpbreaker.StatusError
	require.ErrorAs(t, err, &told)
	require.Equal(t, strings.Repeat("no", 2<<10), string(told.Body), "the reason, for who wants it")
	require.NotContains(t, err.Error(), "nono")

	body := &closed{Reader: strings.NewReader("theirs")}
	require.NoError(t, httpbreaker.Check(&http.Response{StatusCode: 200, Body: body}))
	require.False(t, body.closed)
}

// Case P5: told to come back in an hour, the message does, and the breaker tries
// now and then, as it may be sooner.
func TestRetryAfter(t *testing.T) {
	t.Parallel()

	for _, status := range []int{429, 503} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()

			b := setup(t, answer(status, "Retry-After", "3600"), httpbreaker.Config{Breaker: soon})
			for range 3 {
				delay, ok := handler.RetryDelay(b.post(t))
				require.True(t, ok)
				require.Equal(t, time.Hour, delay)
			}
			require.Equal(t, breaker.Open, b.breaker.State())
			require.InDelta(t, 5*time.Minute, b.breaker.RetryIn(), float64(time.Minute))
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()

	for _, status := range []int{401, 403} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()

			var healed atomic.Bool
			b := setup(t, func(w http.ResponseWriter, r *http.Request) {
				if healed.Load() {
					status = 200
				}
				answer(status)(w, r)
			}, httpbreaker.Config{Breaker: soon})
			for range 4 {
				err := b.post(t)
				require.True(t, handler.IsPermanent(err))
				require.Nil(t, breaker.Of(err))
			}
			for range 3 {
				err := b.post(t)
				require.False(t, handler.IsPermanent(err), "it is no longer the message's fault")
				require.True(t, handler.IsUnavailable(err))
				require.Same(t, b.breaker, breaker.Of(err))
				require.ErrorIs(t, b.breaker.Cause(), breaker.ErrRefused)
				b.mayTry(t)
			}
			healed.Store(true)
			require.NoError(t, b.post(t))
			require.Equal(t, breaker.Closed, b.breaker.State())

			logged := b.logged.String()
			require.Equal(t, 1, strings.Count(logged, "level=ERROR"), logged)
			require.Equal(t, 1, strings.Count(logged, "level=INFO"), logged)
			require.Equal(t, 2, strings.Count(logged, "\n"), logged)
			require.Contains(t, logged, "credentials refused 5 times in a row")
			require.NotContains(t, logged, "secret")
		})
	}
}

// Redirects are somebody's answer, not a second request.
func TestClient_FollowsNoRedirect(t *testing.T) {
	t.Parallel()

	var seen atomic.Int64
	b := setup(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		answer(307, "Location", "/elsewhere")(w, r)
	}, httpbreaker.Config{})
	require.True(t, handler.IsPermanent(b.post(t)))
	require.EqualValues(t, 1, seen.Load())
}
