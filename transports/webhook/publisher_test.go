package webhook_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

var (
	senderSecret = standardSecret("example-secret-example-secret-32")
	otherSecret  = standardSecret("another-secret-another-secret-32")
)

// endpoint is what a publisher posts to, and what it was sent.
type endpoint struct {
	*httptest.Server

	mu       sync.Mutex // guards the fields below
	requests []*http.Request
	bodies   [][]byte
}

// listen starts an endpoint. The body is read before answer is called.
func listen(t *testing.T, answer http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		e.mu.Lock()
		e.requests, e.bodies = append(e.requests, r), append(e.bodies, payload)
		e.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(payload))
		answer(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) seen() []*http.Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

// status answers each request with one status, and a page that nobody reads.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "<html><body>hello</body></html>")
	}
}

// sender makes a publisher that has time.
func sender(t *testing.T, url string, cfg webhook.PublisherConfig) *webhook.Publisher {
	t.Helper()
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = patience
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = patience
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := webhook.NewPublisher(url, senderSecret, cfg)
	require.NoError(t, err)
	t.Cleanup(p.CloseIdleConnections)
	return p
}

// publish publishes one message.
func publish(t *testing.T, p *webhook.Publisher, msg *handler.Message) error {
	t.Helper()
	errs := p.Publish(t.Context(), []*handler.Message{msg})
	require.Len(t, errs, 1)
	return errs[0]
}

func numbered(n int) *handler.Message {
	return &handler.Message{ID: fmt.Sprintf("evt_%d", n), Payload: []byte(body)}
}

// What is sent is what the handler of this package takes, byte for byte; sent again it
// is known.
func TestPublisher_RoundTrip(t *testing.T) {
	t.Parallel()

	hook := setup(t, webhook.StandardWebhooks(senderSecret), webhook.Config{Clock: time.Now, Headers: []string{"message-type", "message-id"}})
	e := listen(t, hook.ServeHTTP)
	p := sender(t, e.URL, webhook.PublisherConfig{})
	msg := &handler.Message{
		ID: "01912d68-783e-7a03-8467-5661c1243ad4", Type: "order.paid", Key: []byte("42"), Payload: []byte(body + "\r\n "),
		ContentType: "application/json; charset=utf-8", Headers: handler.Headers{{Name: "traceparent", Value: []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")}},
	}

	for range 2 {
		require.NoError(t, publish(t, p, msg))
	}

	require.Len(t, hook.shelf.stored(), 1)
	got := hook.shelf.stored()[0]
	require.Equal(t, "standard:"+msg.ID, got.ID)
	require.Equal(t, msg.Payload, got.Payload)
	require.Equal(t, msg.ContentType, got.ContentType)
	for name, want := range map[string]string{
		"message-type": msg.Type, "message-id": msg.ID, "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	} {
		value, _ := got.Headers.First(name)
		require.Equal(t, want, string(value), name)
	}
	require.Equal(t, int64(1), hook.Stats().Duplicate)
}

// While a secret is rotated, whoever has the old one and whoever has the new one both
// take what is sent.
func TestPublisher_Rotation(t *testing.T) {
	t.Parallel()

	seed := []byte("example-seed-example-seed-32-byt")
	private := "whsk_" + base64.StdEncoding.EncodeToString(seed)
	public := "whpk_" + base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
	for name, tt := range map[string]struct {
		receiver string
		more     []string
		taken    bool
	}{
		"First":   {receiver: senderSecret, more: []string{otherSecret}, taken: true},
		"Second":  {receiver: otherSecret, more: []string{otherSecret}, taken: true},
		"KeyPair": {receiver: public, more: []string{otherSecret, private}, taken: true},
		"Neither": {receiver: otherSecret, more: []string{private}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			hook := setup(t, webhook.StandardWebhooks(tt.receiver), webhook.Config{Clock: time.Now})
			p := sender(t, listen(t, hook.ServeHTTP).URL, webhook.PublisherConfig{MoreSecrets: tt.more})

			err := publish(t, p, numbered(1))

			if tt.taken {
				require.NoError(t, err)
				require.Len(t, hook.shelf.stored(), 1)
				return
			}
			require.ErrorContains(t, err, "status 401")
			require.True(t, handler.IsPermanent(err))
		})
	}
}

// Of one key one is out at a time, and of different keys many are.
func TestPublisher_OneOfEachKey(t *testing.T) {
	t.Parallel()

	const keys, each = 5, 4
	var (
		mu        sync.Mutex
		out       = map[string]int{}
		all, most int
		order     = map[string][]string{}
	)
	together := make(chan struct{})
	e := listen(t, func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("message-key")
		mu.Lock()
		out[key]++
		all++
		most = max(most, all)
		if all == keys && out[key] == 1 {
			select {
			case <-together:
			default:
				close(together)
			}
		}
		if out[key] > 1 {
			w.WriteHeader(http.StatusTeapot)
		}
		order[key] = append(order[key], r.Header.Get("message-id"))
		mu.Unlock()
		<-together // one of each key is here
		mu.Lock()
		out[key]--
		all--
		mu.Unlock()
	})
	p := sender(t, e.URL, webhook.PublisherConfig{})
	var msgs []*handler.Message
	want := map[string][]string{}
	for n := range each {
		for k := range keys {
			key := fmt.Sprintf("key_%d", k)
			msg := numbered(n*keys + k)
			msg.Key = []byte(key)
			want[key] = append(want[key], msg.ID)
			msgs = append(msgs, msg)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	for _, err := range p.Publish(ctx, msgs) {
		require.NoError(t, err)
	}

	require.Equal(t, want, order)
	require.Equal(t, keys, most)
}

// Behind one that fails nothing of its key is sent. Others, and what has no key, are.
func TestPublisher_BehindFailed(t *testing.T) {
	t.Parallel()

	e := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("message-id") == "evt_2" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	p := sender(t, e.URL, webhook.PublisherConfig{})
	var msgs []*handler.Message
	for n, key := range []string{"a", "b", "a", "b", "a", "", ""} {
		msg := numbered(n)
		msg.Key = []byte(key)
		msgs = append(msgs, msg)
	}

	errs := p.Publish(t.Context(), msgs)

	require.ErrorContains(t, errs[2], "status 500")
	require.ErrorIs(t, errs[4], webhook.ErrBehindFailed)
	require.False(t, handler.IsPermanent(errs[4]))
	for _, i := range []int{0, 1, 3, 5, 6} {
		require.NoError(t, errs[i])
	}
	require.Len(t, e.seen(), 6)
}

// No more are out than allowed; who waits for half of the attempt in vain was not sent,
// and is told what to do.
func TestPublisher_Concurrency(t *testing.T) {
	t.Parallel()

	release := make(chan struct{})
	e := listen(t, func(http.ResponseWriter, *http.Request) { <-release })
	p := sender(t, e.URL, webhook.PublisherConfig{Concurrency: 1})
	first := make(chan error, 1)
	go func() { first <- p.Publish(context.WithoutCancel(t.Context()), []*handler.Message{numbered(1)})[0] }()
	require.Eventually(t, func() bool { return len(e.seen()) == 1 }, patience, time.Millisecond)

	err := p.Publish(announced{t.Context(), time.Now().Add(time.Second)}, []*handler.Message{numbered(2)})[0]
	close(release)

	require.True(t, handler.IsUnavailable(err), "%v", err)
	require.ErrorContains(t, err, "wait for one of 1 requests to end: give it fewer messages at once, or make Concurrency larger")
	require.NoError(t, <-first)
	require.Len(t, e.seen(), 1)
	require.NoError(t, publish(t, p, numbered(2)))
}

// announced is a context that says when it ends, and does not end.
type announced struct {
	context.Context
	deadline time.Time
}

func (a announced) Deadline() (time.Time, bool) { return a.deadline, true }

// One that hangs holds up nobody else.
func TestPublisher_OneHangs(t *testing.T) {
	t.Parallel()

	release := make(chan struct{})
	e := listen(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("message-id") == "evt_0" {
			<-release
		}
	})
	p := sender(t, e.URL, webhook.PublisherConfig{})
	hanging := make(chan error, 1)
	go func() {
		hanging <- p.Publish(context.WithoutCancel(t.Context()), []*handler.Message{numbered(0)})[0]
	}()
	require.Eventually(t, func() bool { return len(e.seen()) == 1 }, patience, time.Millisecond)

	for n := 1; n <= 20; n++ {
		require.NoError(t, publish(t, p, numbered(n)))
	}

	require.Empty(t, hanging)
	close(release)
	require.NoError(t, <-hanging)
}

// The end of the caller's context is no answer, and nothing is sent after it.
func TestPublisher_ContextEnds(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	e := listen(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	p := sender(t, e.URL, webhook.PublisherConfig{})

	for range 2 {
		err := p.Publish(ctx, []*handler.Message{numbered(1)})[0]
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, handler.IsUnavailable(err))
		require.False(t, handler.IsPermanent(err))
	}
	require.Len(t, e.seen(), 1)
	require.Empty(t, p.Publish(ctx, nil))
	require.True(t, handler.IsPermanent(publish(t, p, nil)))
}

// What a publisher is made of is checked when it is made, without a word of what is
// secret.
func TestNewPublisher_Refused(t *testing.T) {
	t.Parallel()

	const secretText = "hunter2"
	tests := []struct {
		name   string
		url    string
		secret string
		cfg    webhook.PublisherConfig
		want   string // empty: it is right
	}{
		{name: "HTTPS", url: "https://user:hunter2@example.com/hook?token=hunter2"},
		{name: "Loopback", url: "http://127.0.0.1:8080"},
		{name: "LoopbackName", url: "http://LocalHost./hook"},
		{name: "Loopback6", url: "http://[::1]:1/hook"},
		{name: "Plain", url: "http://user:hunter2@example.com/hunter2", want: "URL leads to example.com without TLS"},
		{name: "PlainLookalike", url: "http://localhost.example.com/", want: "without TLS"},
		{name: "PlainAllowed", url: "http://example.com/", cfg: webhook.PublisherConfig{AllowPlain: true}},
		{name: "NoURL", want: "URL must be like https://host/path"},
		{name: "Relative", url: "/hook", want: "URL must be like https://host/path"},
		{name: "NoScheme", url: "example.com/hunter2", want: "URL must be like https://host/path"},
		{name: "NoHost", url: "https:///hunter2", want: "URL must be like https://host/path"},
		{name: "NoHostName", url: "https://:443/hunter2", want: "URL must be like https://host/path"},
		{name: "OtherScheme", url: "ftp://user:hunter2@example.com/", want: "URL must be like https://host/path"},
		{name: "Unreadable", url: "https://user:hunter2@exa mple.com/", want: "URL must be like https://host/path"},
		{name: "NoSecret", url: "https://example.com", secret: "-", want: "secret 1 is empty"},
		{name: "SecretOfAnotherKind", url: "https://example.com", secret: secretText, want: "secret 1 must begin with whsec_"},
		{name: "PublicKey", url: "https://example.com", secret: "whpk_p2GJ3hwFZsw+U4Iwkaek0xR+cfR9wDhmmua8DI+Q1jA=", want: "secret 1 is a public key, which signs nothing: give the private one, whsk_"},
		{name: "SecondSecret", url: "https://example.com", cfg: webhook.PublisherConfig{MoreSecrets: []string{secretText}}, want: "secret 2 must begin with whsec_"},
		{name: "Concurrency", url: "https://example.com", cfg: webhook.PublisherConfig{Concurrency: -1}, want: "Concurrency is -1; it must be between 1 and 10000"},
		{name: "ConnectTimeout", url: "https://example.com", cfg: webhook.PublisherConfig{ConnectTimeout: -1}, want: "ConnectTimeout is -1ns; it must be between 1ms and 5m0s"},
		{name: "RequestTimeout", url: "https://example.com", cfg: webhook.PublisherConfig{RequestTimeout: time.Hour}, want: "RequestTimeout is 1h0m0s; it must be between 1ms and 5m0s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if tt.secret == "" {
				tt.secret = senderSecret
			}
			_, err := webhook.NewPublisher(tt.url, strings.TrimPrefix(tt.secret, "-"), tt.cfg)

			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "make webhook publisher: ")
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), secretText)
		})
	}
}
