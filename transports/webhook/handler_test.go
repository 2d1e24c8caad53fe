package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

// All that is settled is answered 200, also what nobody will ever handle: another copy
// would not help it, and providers switch off endpoints that go on refusing.
func TestHandler_AnswersOutcomes(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	preset := p.preset(p.secrets[0])
	tests := []struct {
		outcome handler.Outcome
		status  int
		stats   webhook.Stats
	}{
		{handler.Stored, http.StatusOK, webhook.Stats{Stored: 1}},
		{handler.Processed, http.StatusOK, webhook.Stats{Processed: 1}},
		{handler.Duplicate, http.StatusOK, webhook.Stats{Duplicate: 1}},
		{handler.Superseded, http.StatusOK, webhook.Stats{Superseded: 1}},
		{handler.Skipped, http.StatusOK, webhook.Stats{Skipped: 1}},
		{handler.Mismatch, http.StatusOK, webhook.Stats{Mismatch: 1}},
		{handler.Dead, http.StatusOK, webhook.Stats{Dead: 1}},
		{0, http.StatusServiceUnavailable, webhook.Stats{Failed: 1}}, // whoever says this may have stored nothing
		{99, http.StatusServiceUnavailable, webhook.Stats{Failed: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.outcome.String(), func(t *testing.T) {
			t.Parallel()

			b := setup(t, preset, webhook.Config{Accept: func(context.Context, *handler.Message) (handler.Outcome, error) { return tt.outcome, nil }})

			w := b.serve(p.request(t, preset, body, signedAt))

			require.Equal(t, tt.status, w.Code)
			require.Equal(t, tt.status == http.StatusOK, w.Body.Len() == 0)
			require.Equal(t, tt.stats, b.Stats())
		})
	}
}

// Case H7: the database was down. Nothing may be acknowledged that is not stored: 503,
// and when to come again.
func TestHandler_StoringFails(t *testing.T) {
	t.Parallel()

	eachProvider(t, func(t *testing.T, p provider) {
		preset := p.preset(p.secrets[0])
		b := setup(t, preset, webhook.Config{RetryAfter: 1500 * time.Millisecond})
		b.shelf.fail = func(context.Context) error { return errors.New("connection refused") }
		for range 3 {
			w := b.serve(p.request(t, preset, body, signedAt))
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
			require.Equal(t, "2", w.Header().Get("Retry-After"), "rounded up")
			require.Equal(t, "not stored, try again later\n", w.Body.String())
		}
		require.Equal(t, webhook.Stats{Failed: 3}, b.Stats())
		log := b.log.String()
		require.Equal(t, 1, strings.Count(log, "\n"), log)
		require.Contains(t, log, "connection refused")
		require.NotContains(t, log, "1999", "the payload")

		b.shelf.fail = nil
		require.Equal(t, http.StatusOK, b.serve(p.request(t, preset, body, signedAt)).Code)
		require.Len(t, b.shelf.stored(), 1)
	})
}

// Storing that takes longer than the provider would wait is cancelled in time.
func TestHandler_StoringTakesTooLong(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		p := providers()[0]
		preset := p.preset(p.secrets[0])
		b := setup(t, preset, webhook.Config{})
		b.shelf.fail = func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		began := time.Now()

		w := b.serve(p.request(t, preset, body, signedAt))

		require.Equal(t, 5*time.Second, time.Since(began))
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, "30", w.Header().Get("Retry-After"))
		require.Equal(t, webhook.Stats{Late: 1}, b.Stats())
		require.Contains(t, b.log.String(), "the provider was to be answered by now")
	})
}

// A provider that hangs up comes again. What it sent is stored all the same, and no
// connection to the database is lost over it.
func TestHandler_ProviderHangsUp(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	preset := p.preset(p.secrets[0])
	b := setup(t, preset, webhook.Config{})
	ctx, hangUp := context.WithCancel(t.Context())
	b.shelf.fail = func(ctx context.Context) error {
		hangUp()
		return ctx.Err()
	}

	b.serve(p.request(t, preset, body, signedAt).WithContext(ctx))

	require.Len(t, b.shelf.stored(), 1)
	require.Equal(t, webhook.Stats{Stored: 1}, b.Stats())
}

// Accept may be anybody's: one that takes too long is answered for and left to end, and
// one that panics or ends its goroutine has settled nothing.
func TestHandler_Accept(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	preset := p.preset(p.secrets[0])

	t.Run("TakesTooLong", func(t *testing.T) {
		t.Parallel()

		synctest.Test(t, func(t *testing.T) {
			var finished atomic.Bool
			b := setup(t, preset, webhook.Config{Timeout: time.Second, Accept: func(ctx context.Context, msg *handler.Message) (handler.Outcome, error) {
				<-ctx.Done()
				msg.ID = "still its own" // under -race: nobody else reads it
				time.Sleep(time.Minute)
				finished.Store(true)
				return handler.Processed, nil
			}})
			began := time.Now()
			w := b.serve(p.request(t, preset, body, signedAt))
			require.Equal(t, time.Second, time.Since(began))
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
			require.Equal(t, webhook.Stats{Late: 1}, b.Stats())
			require.False(t, finished.Load())
			time.Sleep(time.Minute)
			synctest.Wait()
			require.True(t, finished.Load())
		})
	})
	t.Run("Panics", func(t *testing.T) {
		t.Parallel()

		b := setup(t, preset, webhook.Config{Accept: func(context.Context, *handler.Message) (handler.Outcome, error) { panic("oh") }})
		require.Equal(t, http.StatusServiceUnavailable, b.serve(p.request(t, preset, body, signedAt)).Code)
		require.Contains(t, b.log.String(), "Accept panicked: oh")
	})
	t.Run("Goexit", func(t *testing.T) {
		t.Parallel()

		b := setup(t, preset, webhook.Config{Accept: func(context.Context, *handler.Message) (handler.Outcome, error) {
			t.SkipNow() // as a test's helper would
			return handler.Processed, nil
		}})
		require.Equal(t, http.StatusServiceUnavailable, b.serve(p.request(t, preset, body, signedAt)).Code)
	})
}

// What is of no interest is answered as if it were stored, and counted.
func TestHandler_Types(t *testing.T) {
	t.Parallel()

	github, stripe := providers()[1], providers()[0]
	tests := []struct {
		name     string
		provider provider
		event    string
		types    []string
		stored   bool
	}{
		{name: "All", provider: github, event: "push", stored: true},
		{name: "Named", provider: github, event: "push", types: []string{"issues", "push"}, stored: true},
		{name: "NotNamed", provider: github, event: "push", types: []string{"issues"}},
		{name: "OtherCase", provider: github, event: "Push", types: []string{"push"}},
		{name: "Ping", provider: github, event: "ping"},
		{name: "PingNamed", provider: github, event: "ping", types: []string{"ping"}, stored: true},
		{name: "NoType", provider: stripe, types: []string{"charge.succeeded"}, stored: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			preset := tt.provider.preset(tt.provider.secrets[0])
			b := setup(t, preset, webhook.Config{Types: tt.types})
			r := tt.provider.request(t, preset, body, signedAt)
			if tt.event != "" {
				r.Header.Set("X-GitHub-Event", tt.event)
			}

			w := b.serve(r)

			require.Equal(t, http.StatusOK, w.Code)
			require.Zero(t, w.Body.Len())
			want := webhook.Stats{Ignored: 1}
			if tt.stored {
				want = webhook.Stats{Stored: 1}
			}
			require.Equal(t, want, b.Stats())
			require.Len(t, b.shelf.stored(), int(want.Stored))
		})
	}
}

// A live endpoint of a platform gets its test events too. An error for them would count
// against the endpoint; acting on one would be worse.
func TestHandler_RequireLive(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	preset := p.preset(p.secrets[0])
	tests := []struct {
		body   string
		stored bool
	}{
		{`{"id":"evt_1","livemode":true}`, true},
		{`{"id":"evt_1","livemode":false}`, false},
		{`{"id":"evt_1","livemode":null}`, false},
		{`{"id":"evt_1","livemode":"true"}`, false},
		{`{"id":"evt_1"}`, false},
		{`not JSON: a person should see it`, true},
	}
	for _, tt := range tests {
		b := setup(t, preset, webhook.Config{RequireLive: true})
		require.Equal(t, http.StatusOK, b.serve(p.request(t, preset, tt.body, signedAt)).Code, tt.body)
		require.Equal(t, tt.stored, len(b.shelf.stored()) == 1, tt.body)
		require.Equal(t, tt.stored, b.Stats().NotLive == 0, tt.body)

		b = setup(t, preset, webhook.Config{})
		b.serve(p.request(t, preset, tt.body, signedAt))
		require.Len(t, b.shelf.stored(), 1, tt.body)
	}
}

func TestHandler_Methods(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	preset := p.preset(p.secrets[0])
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions, "post"} {
		b := setup(t, preset, webhook.Config{})
		r := p.request(t, preset, body, signedAt)
		r.Method = method
		w := b.serve(r)
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		require.Equal(t, http.MethodPost, w.Header().Get("Allow"))
		require.Equal(t, webhook.Stats{WrongMethod: 1}, b.Stats())
	}
}

func TestHandler_ContentTypes(t *testing.T) {
	t.Parallel()

	const form = "application/x-www-form-urlencoded"
	tests := []struct {
		kind   string
		stripe int
		github int
	}{
		{"application/json", 200, 200},
		{"Application/JSON ; charset=UTF-8", 200, 200},
		{form, 415, 200},
		{"", 415, 415},
		{"text/plain", 415, 415},
		{"application/jsonp", 415, 415},
		{"text/html, application/json", 415, 415},
		{"multipart/form-data; boundary=x", 415, 415},
	}
	for _, tt := range tests {
		for i, want := range []int{tt.stripe, tt.github} {
			p := providers()[i]
			preset := p.preset(p.secrets[0])
			b := setup(t, preset, webhook.Config{})
			r := p.request(t, preset, body, signedAt)
			r.Header.Set("Content-Type", tt.kind)
			require.Equal(t, want, b.serve(r).Code, "%s %s", p.name, tt.kind)
			require.Equal(t, want == 415, b.Stats().WrongType == 1)
		}
	}
	for _, encoding := range []string{"gzip", "deflate", "br", "identity, gzip"} {
		p := providers()[0]
		preset := p.preset(p.secrets[0])
		b := setup(t, preset, webhook.Config{})
		r := p.request(t, preset, body, signedAt)
		r.Header.Add("Content-Encoding", "identity")
		r.Header.Add("Content-Encoding", encoding)
		b.requireRefused(t, http.StatusUnsupportedMediaType, "content encoding is not accepted", r)
	}
}

// No answer is a redirect, none is 410, and none tells what a request held.
func TestHandler_NeverAnswers(t *testing.T) {
	t.Parallel()

	eachProvider(t, func(t *testing.T, p provider) {
		preset := p.preset(p.secrets[0])
		b := setup(t, preset, webhook.Config{MaxBody: 1000})
		for _, payload := range []string{body, "", "secret content", strings.Repeat("secret content", 1000)} {
			for _, spoil := range []func(*http.Request){
				func(*http.Request) {},
				func(r *http.Request) { r.Method = http.MethodGet },
				func(r *http.Request) { r.Header = http.Header{} },
				func(r *http.Request) { r.Header.Set(p.header, "secret content") },
			} {
				r := p.request(t, preset, payload, signedAt)
				spoil(r)
				w := httptest.NewRecorder()
				b.ServeHTTP(w, r)
				require.NotEqual(t, 3, w.Code/100)
				require.NotEqual(t, http.StatusGone, w.Code)
				require.NotContains(t, w.Body.String(), "secret content")
				require.NotContains(t, w.Body.String(), p.secrets[0])
			}
		}
	})
}
