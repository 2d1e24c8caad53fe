package httpbreaker_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/breaker/httpbreaker"
)

type testBundle struct {
	transport *httpbreaker.Transport
	client    *http.Client
	breaker   *breaker.Breaker
	url       string
	logged    *strings.Builder // read it when nothing runs
}

// setup starts a server and makes a transport to it.
func setup(t *testing.T, serve http.HandlerFunc, cfg httpbreaker.Config) *testBundle {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	return setupURL(t, server.URL, cfg)
}

func setupURL(t *testing.T, url string, cfg httpbreaker.Config) *testBundle {
	t.Helper()
	b := &testBundle{url: url, logged: &strings.Builder{}}
	cfg.Logger = slog.New(slog.NewTextHandler(b.logged, nil))
	b.transport = httpbreaker.New(cfg)
	b.client = b.transport.Client()
	b.breaker = b.transport.Breaker(strings.TrimPrefix(strings.TrimPrefix(url, "http://"), "https://"))
	t.Cleanup(b.client.CloseIdleConnections)
	return b
}

// post sends a request, and reads and checks the answer.
func (b *testBundle) post(t *testing.T) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/charges?token=secret", strings.NewReader("payload"))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer secret")
	return b.do(req)
}

func (b *testBundle) do(req *http.Request) error {
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := httpbreaker.Check(resp); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func answer(status int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "secret")
	}
}

// soon has a trial soon.
var soon = breaker.Config{OpenFor: time.Millisecond, OpenMax: time.Millisecond, RefusedFor: time.Millisecond}

// mayTry waits until a trial may go.
func (b *testBundle) mayTry(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return b.breaker.RetryIn() == 0 }, time.Minute, time.Millisecond)
}
