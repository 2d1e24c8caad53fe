package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

// What each status means for the message, whatever stands in the body, which is HTML
// here; and what is asked for is obeyed.
func TestPublisher_Status(t *testing.T) {
	t.Parallel()

	const (
		success = iota
		retryable
		permanent
	)
	tests := map[int]int{
		200: success, 201: success, 202: success, 204: success, 299: success,
		408: retryable, 409: retryable, 425: retryable, 429: retryable,
		500: retryable, 501: retryable, 502: retryable, 503: retryable, 504: retryable, 505: retryable, 599: retryable,
		300: permanent, 301: permanent, 302: permanent, 303: permanent, 304: permanent, 307: permanent, 308: permanent,
		400: permanent, 401: permanent, 403: permanent, 404: permanent, 405: permanent, 410: permanent, 413: permanent, 415: permanent, 422: permanent, 431: permanent, 499: permanent,
	}
	for code, want := range tests {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()

			e := listen(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "77")
				status(code)(w, r)
			})
			address, err := url.Parse(e.URL + "/hook?token=hunter2")
			require.NoError(t, err)
			address.User = url.UserPassword("user", "hunter2")
			p := sender(t, address.String(), webhook.PublisherConfig{})

			err = publish(t, p, numbered(1))

			require.Len(t, e.seen(), 1)
			if want == success {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, fmt.Sprintf(`publish message "evt_1": POST %s/hook: status %d`, address.Host, code))
			for _, secret := range []string{"hunter2", "1999", senderSecret, "hello"} {
				require.NotContains(t, err.Error(), secret)
			}
			require.Equal(t, want == permanent, handler.IsPermanent(err))
			require.False(t, handler.IsUnavailable(err), "one message says nothing about the endpoint")
			delay, asked := handler.RetryDelay(err)
			require.Equal(t, want == retryable, asked)
			if asked {
				require.Equal(t, 77*time.Second, delay)
			}
		})
	}
}

// Retry-After is seconds or a date, an hour at most; what cannot be read is ignored.
func TestPublisher_RetryAfter(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]time.Duration{
		"0": 0, "3": 3 * time.Second, "86400": time.Hour, "99999999999999999999999": time.Hour, "-1": -1, "soon": -1, "": -1,
		"Mon, 30 Nov 2026 10:00:07 GMT": 7 * time.Second, "Mon, 30 Nov 2026 09:00:00 GMT": 0, "Mon, 30 Nov 2099 09:00:00 GMT": time.Hour,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()

			e := listen(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", "Mon, 30 Nov 2026 10:00:00 GMT")
				w.Header().Set("Retry-After", text)
				w.WriteHeader(http.StatusServiceUnavailable)
			})

			err := publish(t, sender(t, e.URL, webhook.PublisherConfig{}), numbered(1))

			delay, asked := handler.RetryDelay(err)
			require.Equal(t, want >= 0, asked)
			require.Equal(t, max(want, 0), delay)
		})
	}
}

// A redirect is not followed: the other host gets neither payload nor signature. The
// error says where it led to, without what may be secret in that.
func TestPublisher_Redirect(t *testing.T) {
	t.Parallel()

	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()

			elsewhere := listen(t, status(http.StatusOK))
			other := strings.TrimPrefix(elsewhere.URL, "http://")
			e := listen(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "http://user:hunter2@"+other+"/login?next=hunter2#hunter2")
				w.WriteHeader(code)
			})

			err := publish(t, sender(t, e.URL, webhook.PublisherConfig{}), numbered(1))

			require.True(t, handler.IsPermanent(err))
			require.ErrorContains(t, err, `it leads to "`+elsewhere.URL+`/login", and redirects are not followed`)
			require.NotContains(t, err.Error(), "hunter2")
			require.Empty(t, elsewhere.seen())
			require.Len(t, e.seen(), 1)
		})
	}
	t.Run("Relative", func(t *testing.T) {
		t.Parallel()

		e := listen(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/hook/")
			w.WriteHeader(http.StatusMovedPermanently)
		})
		err := publish(t, sender(t, e.URL+"/hook", webhook.PublisherConfig{}), numbered(1))
		require.ErrorContains(t, err, `it leads to "`+e.URL+`/hook/"`)
	})
	t.Run("Nowhere", func(t *testing.T) {
		t.Parallel()

		err := publish(t, sender(t, listen(t, status(http.StatusFound)).URL, webhook.PublisherConfig{}), numbered(1))
		require.True(t, handler.IsPermanent(err))
		require.ErrorContains(t, err, "status 302 Found: redirects are not followed")
	})
}

// An endpoint that takes a request and drops the connection: the message failed, and it
// was sent once, also on a connection that was used before, where net/http would send a
// request with an Idempotency-Key again by itself.
func TestPublisher_Dropped(t *testing.T) {
	t.Parallel()

	var drop atomic.Bool
	e := listen(t, func(w http.ResponseWriter, _ *http.Request) {
		if drop.Load() {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		}
	})
	p := sender(t, e.URL, webhook.PublisherConfig{})
	require.NoError(t, publish(t, p, numbered(1)))
	drop.Store(true)

	for n := range 10 {
		err := publish(t, p, numbered(2))
		require.ErrorContains(t, err, `publish message "evt_2": POST 127.0.0.1`)
		require.False(t, handler.IsPermanent(err))
		require.False(t, handler.IsUnavailable(err), "one message that fails says nothing about the endpoint: %v", err)
		require.Len(t, e.seen(), n+2, "nothing is sent twice")
	}
}

// An endpoint that hangs: its time is up before that of the attempt, so that the relay
// sees a message that failed and no outage, for which no attempt is counted.
func TestPublisher_Hangs(t *testing.T) {
	t.Parallel()

	e := listen(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("message-id") != "evt_1" {
			<-r.Context().Done()
		}
	})
	for name, attempt := range map[string]struct{ request, attempt time.Duration }{
		"RequestTimeout": {request: time.Second, attempt: patience},
		"AttemptTimeout": {request: patience, attempt: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := sender(t, e.URL, webhook.PublisherConfig{RequestTimeout: attempt.request})
			require.Eventually(t, func() bool { return publish(t, p, numbered(1)) == nil }, patience, time.Millisecond, "it is connected")
			sent := &handler.Message{ID: name, Payload: []byte(body)}
			var err error
			require.Eventually(t, func() bool { // it has arrived there
				ctx, cancel := context.WithTimeout(t.Context(), attempt.attempt)
				defer cancel()
				err = p.Publish(ctx, []*handler.Message{sent})[0]
				for _, r := range e.seen() {
					if r.Header.Get("message-id") == name {
						return true
					}
				}
				return false
			}, patience, time.Millisecond)

			require.ErrorContains(t, err, "no whole answer in ")
			require.False(t, handler.IsPermanent(err))
			require.False(t, handler.IsUnavailable(err), "%v", err)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

// A host that nobody can connect to, or whose certificate nobody knows, has seen
// nothing: that is an outage, whatever the message.
func TestPublisher_NotConnected(t *testing.T) {
	t.Parallel()

	closed := httptest.NewServer(nil)
	closed.Close()
	unknown := httptest.NewUnstartedServer(nil)
	unknown.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	unknown.StartTLS()
	t.Cleanup(unknown.Close)
	for name, to := range map[string]string{"Refused": closed.URL, "Certificate": unknown.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := sender(t, to+"/?hunter2", webhook.PublisherConfig{})
			for range 5 {
				err := publish(t, p, numbered(1))
				require.True(t, handler.IsUnavailable(err), "%v", err)
				require.False(t, handler.IsPermanent(err))
				require.NotContains(t, err.Error(), "hunter2")
			}
		})
	}
}

// By TLS, with a Transport of one's own, by HTTP/1.1 and HTTP/2.
func TestPublisher_TLS(t *testing.T) {
	t.Parallel()

	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP2=%t", http2), func(t *testing.T) {
			t.Parallel()

			hook := setup(t, webhook.StandardWebhooks(senderSecret), webhook.Config{Clock: time.Now})
			server := httptest.NewUnstartedServer(hook)
			server.EnableHTTP2 = http2
			server.StartTLS()
			t.Cleanup(server.Close)
			p := sender(t, server.URL, webhook.PublisherConfig{Transport: server.Client().Transport})

			for n := range 3 {
				require.NoError(t, publish(t, p, numbered(n)))
			}
			require.Len(t, hook.shelf.stored(), 3)
		})
	}
}

// One message that the endpoint always fails at, and be it the only one there is, never
// looks like an outage: an outage spends no attempt, and nobody would come to see it.
// Several different ones in a row, with no success between, are one.
func TestPublisher_Away(t *testing.T) {
	t.Parallel()

	var fail atomic.Bool
	fail.Store(true)
	e := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if fail.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	p := sender(t, e.URL, webhook.PublisherConfig{})
	for range 10 {
		require.False(t, handler.IsUnavailable(publish(t, p, numbered(1))))
	}
	require.False(t, handler.IsUnavailable(publish(t, p, numbered(2))))
	require.True(t, handler.IsUnavailable(publish(t, p, numbered(3))), "three of them")
	require.True(t, handler.IsUnavailable(publish(t, p, numbered(1))))

	fail.Store(false)
	require.NoError(t, publish(t, p, numbered(4)))
	fail.Store(true)
	require.False(t, handler.IsUnavailable(publish(t, p, numbered(1))), "it was there meanwhile")
}

// An endpoint that says not yet, or that it cannot do what was asked, is there.
func TestPublisher_NotYet(t *testing.T) {
	t.Parallel()

	for _, code := range []int{408, 409, 425, 501, 505} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()

			p := sender(t, listen(t, status(code)).URL, webhook.PublisherConfig{})
			for n := range 10 {
				err := publish(t, p, numbered(n))
				require.Error(t, err)
				require.False(t, handler.IsPermanent(err))
				require.False(t, handler.IsUnavailable(err))
			}
		})
	}
}

// What one message is answered holds up only itself. When several are told to come
// later, nothing is sent before.
func TestPublisher_Hold(t *testing.T) {
	t.Parallel()

	e := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get("message-id"); id != "evt_9" {
			w.Header().Set("Retry-After", "7200")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	p := sender(t, e.URL, webhook.PublisherConfig{})
	for range 5 {
		require.False(t, handler.IsUnavailable(publish(t, p, numbered(1))))
	}
	require.NoError(t, publish(t, p, numbered(9)))
	for n := range 3 {
		require.Equal(t, n == 2, handler.IsUnavailable(publish(t, p, numbered(n))))
	}
	sent := len(e.seen())

	err := publish(t, p, numbered(9))

	require.Len(t, e.seen(), sent, "nothing is sent")
	require.ErrorContains(t, err, "asked for a pause")
	require.True(t, handler.IsUnavailable(err))
	delay, asked := handler.RetryDelay(err)
	require.True(t, asked)
	require.Positive(t, delay)
	require.LessOrEqual(t, delay, 5*time.Minute, "it is tried now and then")
}

// A pause that was asked for ends.
func TestPublisher_HoldEnds(t *testing.T) {
	t.Parallel()

	var answers atomic.Int64
	e := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if answers.Add(1) <= 3 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	p := sender(t, e.URL, webhook.PublisherConfig{})
	for n := range 3 {
		require.Error(t, publish(t, p, numbered(n)))
	}
	require.Eventually(t, func() bool { return publish(t, p, numbered(1)) == nil }, patience, 10*time.Millisecond)
	require.Len(t, e.seen(), 4, "and nothing was sent before")
}

// A secret that was rotated on the other side must not empty an outbox into quarantine:
// a few are refused for good, then all wait, and a person is called.
func TestPublisher_Unauthorized(t *testing.T) {
	t.Parallel()

	for _, code := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()

			var log bytes.Buffer
			e := listen(t, status(code))
			p := sender(t, e.URL, webhook.PublisherConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			var (
				wg        sync.WaitGroup
				permanent atomic.Int64
			)
			for n := range 50 {
				wg.Go(func() {
					err := p.Publish(context.WithoutCancel(t.Context()), []*handler.Message{numbered(n)})[0]
					if handler.IsPermanent(err) {
						permanent.Add(1)
					} else if !handler.IsUnavailable(err) {
						t.Errorf("neither permanent nor an outage: %v", err)
					}
				})
			}
			wg.Wait()
			require.LessOrEqual(t, permanent.Load(), int64(4))
			sent := len(e.seen())

			err := publish(t, p, numbered(99))

			require.True(t, handler.IsUnavailable(err))
			require.ErrorContains(t, err, "see whether the secret is the one that the endpoint has")
			require.Len(t, e.seen(), sent)
			require.Equal(t, 1, strings.Count(log.String(), "our credentials are refused, somebody must look at them"))
			require.NotContains(t, log.String(), senderSecret)
		})
	}
}

// A body without end is no matter: the status has said it.
func TestPublisher_LargeAnswer(t *testing.T) {
	t.Parallel()

	for _, code := range []int{http.StatusOK, http.StatusBadRequest} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()

			e := listen(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(code)
				page := bytes.Repeat([]byte("x"), 1<<16)
				for {
					if _, err := w.Write(page); err != nil {
						return
					}
				}
			})
			err := publish(t, sender(t, e.URL, webhook.PublisherConfig{}), numbered(1))
			require.Equal(t, code == http.StatusOK, err == nil)
		})
	}
}

// Connections are used again, whatever is answered.
func TestPublisher_ConnectionReused(t *testing.T) {
	t.Parallel()

	var connections, requests atomic.Int64
	e := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status([]int{200, 500, 200, 400}[requests.Add(1)%4])(w, r)
	}))
	e.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	e.Start()
	t.Cleanup(e.Close)
	p := sender(t, e.URL, webhook.PublisherConfig{})

	for n := range 20 {
		_ = publish(t, p, numbered(n))
	}

	require.Equal(t, int64(20), requests.Load())
	require.Equal(t, int64(1), connections.Load())
}
