package httpbreaker_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/breaker/httpbreaker"
	"github.com/semel-go/semel/handler"
)

var quiet = slog.New(slog.DiscardHandler)

// noContent answers 204 to all but a host that is down.
func noContent(req *http.Request) (*http.Response, error) {
	if strings.HasPrefix(strings.ToLower(req.URL.Host), "down") {
		return &http.Response{StatusCode: 500}, nil
	}
	return &http.Response{StatusCode: 204}, nil
}

func get(t *testing.T, tr *httpbreaker.Transport, url string) error {
	t.Helper()
	resp, err := tr.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return httpbreaker.Check(resp)
}

func TestTransport_BreakerPerHost(t *testing.T) {
	t.Parallel()

	tr := httpbreaker.New(httpbreaker.Config{Base: roundTrip(noContent), Logger: quiet})
	for range 3 {
		require.Error(t, get(t, tr, "https://Down.example:443/a"))
	}
	require.ErrorIs(t, get(t, tr, "https://down.example/b"), breaker.ErrOpen)
	require.NoError(t, get(t, tr, "https://up.example"))
	require.Error(t, get(t, tr, "https://down.example:8443/"))
	require.Equal(t, breaker.Open, tr.Breaker("down.example").State())
	require.Equal(t, breaker.Closed, tr.Breaker("down.example:8443").State())
	require.Same(t, tr.Breaker("up.example"), tr.Breaker("up.example"))
	var names []string
	for _, s := range tr.Stats() {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"down.example", "down.example:8443", "up.example"}, names)
}

func TestTransport_BreakerByName(t *testing.T) {
	t.Parallel()

	tr := httpbreaker.New(httpbreaker.Config{
		Base:   roundTrip(noContent),
		Logger: quiet,
		Name:   func(req *http.Request) string { return req.Header.Get("Tenant") },
	})
	for range 3 {
		require.Error(t, get(t, tr, "https://down.example"))
	}
	require.Equal(t, breaker.Open, tr.Breaker("").State())
}

// Hosts may come from messages: their number is nobody's memory.
func TestTransport_BreakersAreBounded(t *testing.T) {
	t.Parallel()

	tr := httpbreaker.New(httpbreaker.Config{Base: roundTrip(noContent), Logger: quiet, MaxBreakers: 10, Breaker: breaker.Config{Failures: 1}})
	pinned := tr.Breaker("up.example")
	for i := range 1000 {
		require.NoError(t, get(t, tr, fmt.Sprintf("https://up%d.example", i)))
	}
	require.Len(t, tr.Stats(), 10)
	require.Same(t, pinned, tr.Breaker("up.example"))
	for i := range 9 {
		require.Error(t, get(t, tr, fmt.Sprintf("https://down%d.example", i)))
	}
	require.NoError(t, get(t, tr, "https://up1.example"))
	require.Error(t, get(t, tr, "https://down9.example"))
	require.ErrorIs(t, get(t, tr, "https://up2.example"), breaker.ErrOpen, "it shares one with down9")
	require.Len(t, tr.Stats(), 11)
	require.Equal(t, breaker.Open, tr.Breaker("down3.example").State(), "none that is open is forgotten")
}

// Retries beyond the budget are refused before anything is sent, and cost no
// attempt.
func TestTransport_RetryBudget(t *testing.T) {
	t.Parallel()

	sent := 0
	tr := httpbreaker.New(httpbreaker.Config{
		Base: roundTrip(func(req *http.Request) (*http.Response, error) {
			sent++
			return noContent(req)
		}),
		Budget: breaker.BudgetConfig{Ratio: 0.5, PerSecond: -1},
	})
	attempt := func(n int) error {
		ctx := handler.WithCause(t.Context(), &handler.Cause{Attempt: n})
		payload := &closed{Reader: strings.NewReader("payload")}
		resp, err := tr.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPost, "https://up.example", payload))
		if err == nil {
			require.NoError(t, resp.Body.Close())
			return nil
		}
		require.True(t, payload.closed)
		return err
	}
	require.NoError(t, attempt(1))
	err := attempt(2)
	require.ErrorIs(t, err, breaker.ErrBudget)
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.True(t, isNotSent(err))
	require.Same(t, tr.Breaker("up.example"), breaker.Of(err))
	var open *breaker.OpenError
	require.ErrorAs(t, err, &open)
	require.Equal(t, time.Second, open.RetryIn)
	require.Equal(t, breaker.Closed, open.Breaker.State())
	require.NoError(t, attempt(0), "outside of a message")
	require.NoError(t, attempt(2))
	require.ErrorIs(t, attempt(3), breaker.ErrBudget)
	require.Equal(t, 3, sent)
	require.NoError(t, attempt(1))
	require.ErrorIs(t, attempt(2), breaker.ErrBudget, "half a token, and the retry has brought none")
}

// A trial is bounded as it is: a host must be found again also by retries alone.
func TestTransport_TrialNeedsNoToken(t *testing.T) {
	t.Parallel()

	tr := httpbreaker.New(httpbreaker.Config{
		Base: roundTrip(noContent), Logger: quiet, Breaker: soon,
		Budget: breaker.BudgetConfig{Ratio: -1, PerSecond: -1},
	})
	for range 3 {
		require.Error(t, get(t, tr, "https://down.example"))
	}
	host := tr.Breaker("down.example")
	require.Eventually(t, func() bool { return host.RetryIn() == 0 }, time.Minute, time.Millisecond)
	ctx := handler.WithCause(t.Context(), &handler.Cause{Attempt: 2})
	resp, err := tr.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "https://down.example", nil))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.EqualValues(t, 1, host.Stats().Trials)
}

// closed is a body that knows it was closed.
type closed struct {
	io.Reader
	closed bool
}

func (c *closed) Close() error {
	c.closed = true
	return nil
}

func TestTransport_OnChange(t *testing.T) {
	t.Parallel()

	var told []string
	b := setup(t, answer(500), httpbreaker.Config{OnChange: func(b *breaker.Breaker, from, to breaker.State) {
		told = append(told, fmt.Sprint(b.Name(), " ", from, " ", to))
	}})
	for range 5 {
		require.Error(t, b.post(t))
	}
	require.Equal(t, []string{b.breaker.Name() + " closed open"}, told)
	require.Contains(t, b.logged.String(), "level=WARN")
	require.Contains(t, b.logged.String(), "status 500")
}

// A connection that changes its protocol belongs to its caller, for as long as it
// takes.
func TestTransport_SwitchingProtocols(t *testing.T) {
	t.Parallel()

	b := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, rw)
	}, httpbreaker.Config{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url, nil)
	require.NoError(t, err)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := b.client.Do(req)
	require.NoError(t, err)
	require.NoError(t, httpbreaker.Check(resp))
	conn := resp.Body.(io.ReadWriteCloser)
	_, err = io.WriteString(conn, "hello\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", line)
	require.NoError(t, conn.Close())
}

func TestTransport_SwitchingProtocols_TakesItsTime(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		conn, _ := net.Pipe()
		var sent context.Context
		tr := httpbreaker.New(httpbreaker.Config{Base: roundTrip(func(req *http.Request) (*http.Response, error) {
			sent = req.Context()
			return &http.Response{StatusCode: 101, Body: conn}, nil
		})})
		resp, err := tr.RoundTrip(httptest.NewRequest(http.MethodGet, "https://up.example", nil))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.NoError(t, sent.Err())
		require.NoError(t, resp.Body.Close())
		require.Error(t, sent.Err())
	})
}

// The answer names the request as it came, whose context and headers are its caller's.
func TestTransport_AnswerNamesTheRequest(t *testing.T) {
	t.Parallel()

	var sent *http.Request
	tr := httpbreaker.New(httpbreaker.Config{Base: roundTrip(func(req *http.Request) (*http.Response, error) {
		sent = req
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("done")), Request: req}, nil
	})})
	req := httptest.NewRequest(http.MethodPost, "https://up.example", nil)
	req.Header.Set("Idempotency-Key", "k1")
	resp, err := tr.RoundTrip(req)
	require.NoError(t, err)
	require.Same(t, req, resp.Request)
	require.NoError(t, sent.Context().Err())
	require.NoError(t, resp.Body.Close())
	require.Error(t, sent.Context().Err(), "nothing is left behind")
	require.NoError(t, resp.Request.Context().Err())
}

// A cancelled request is not an impossible one: its message comes again.
func TestTransport_CancelledBeforeItIsSent(t *testing.T) {
	t.Parallel()

	b := setup(t, answer(200), httpbreaker.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url, nil)
	require.NoError(t, err)
	_, err = b.transport.RoundTrip(req) //nolint:bodyclose // there is none
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, handler.IsPermanent(err))
	require.Nil(t, breaker.Of(err))
}

func TestTransport_HTTP2(t *testing.T) {
	t.Parallel()

	hang := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			<-hang
		}
		_, _ = io.WriteString(w, r.Proto+" "+r.Header.Get("Idempotency-Key"))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hang) })
	b := setupURL(t, server.URL, httpbreaker.Config{Base: server.Client().Transport, RequestTimeout: 5 * time.Second})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url, nil)
	require.NoError(t, err)
	req.Header.Set("Idempotency-Key", "k1")
	resp, err := b.client.Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "HTTP/2.0 k1", string(text))

	req, err = http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, b.url+"/hang", nil)
	require.NoError(t, err)
	err = b.do(req)
	require.Same(t, b.breaker, breaker.Of(err))
	require.False(t, isNotSent(err), "it was sent: %v", err)
}
