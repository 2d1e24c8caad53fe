package httpbreaker_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/breaker/httpbreaker"
	"github.com/semel-go/semel/handler"
)

func isNotSent(err error) bool {
	var n interface{ NotSent() bool }
	return errors.As(err, &n) && n.NotSent()
}

// listen runs serve with each connection.
func listen(t *testing.T, serve func(net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer func() { _ = conn.Close() }()
				serve(conn)
			})
		}
	})
	t.Cleanup(conns.Wait)
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// What was certainly not sent says so: the ledger of calls may go on at once.
func TestNotSent(t *testing.T) {
	t.Parallel()

	refusing := listen(t, func(net.Conn) {})
	tests := []struct {
		name string
		url  func(t *testing.T) string
		want bool
	}{
		{name: "ConnectionRefused", want: true, url: func(t *testing.T) string {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			require.NoError(t, l.Close())
			return "http://" + l.Addr().String()
		}},
		{name: "UnknownHost", want: true, url: func(*testing.T) string { return "http://nobody.invalid" }},
		{name: "NoTLS", want: true, url: func(*testing.T) string { return strings.Replace(refusing, "http:", "https:", 1) }},
		{name: "UntrustedCertificate", want: true, url: func(t *testing.T) string {
			server := httptest.NewUnstartedServer(answer(200))
			server.Config.ErrorLog = discardLog
			server.StartTLS()
			t.Cleanup(server.Close)
			return server.URL
		}},
		{name: "ClosedAfterAccept", want: false, url: func(*testing.T) string { return refusing }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setupURL(t, tt.url(t), httpbreaker.Config{})
			for range 3 {
				err := b.post(t)
				require.Equal(t, tt.want, isNotSent(err), "%v", err)
				require.True(t, handler.IsUnavailable(err))
				require.Same(t, b.breaker, breaker.Of(err))
			}
			require.ErrorIs(t, b.post(t), breaker.ErrOpen)
			require.True(t, isNotSent(b.post(t)))
			require.Equal(t, 1, strings.Count(b.logged.String(), "\n"), b.logged)
			require.NotContains(t, b.logged.String(), "secret")
		})
	}
}

// A base that does not tell net/http's traces may have sent anything.
func TestNotSent_BaseThatTellsNothing(t *testing.T) {
	t.Parallel()

	b := setupURL(t, "http://bank", httpbreaker.Config{Base: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("broken")
	})})
	err := b.post(t)
	require.False(t, isNotSent(err))
	require.Same(t, b.breaker, breaker.Of(err))

	b = setupURL(t, "http://bank", httpbreaker.Config{Base: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, nil //nolint:nilnil // what a broken one may do
	})})
	_, err = b.transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://bank/", nil))
	require.Same(t, b.breaker, breaker.Of(err))
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A request that cannot be sent is the message's fault.
func TestRoundTrip_ImpossibleRequest(t *testing.T) {
	t.Parallel()

	b := setup(t, answer(200), httpbreaker.Config{})
	for range 5 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url, nil)
		require.NoError(t, err)
		req.Header.Set("X-Key", "new\nline")
		_, err = b.transport.RoundTrip(req) //nolint:bodyclose // there is none
		require.True(t, handler.IsPermanent(err))
		require.True(t, isNotSent(err))
	}
	require.Equal(t, breaker.Closed, b.breaker.State())
	require.NoError(t, b.post(t))
}

// The body to send cannot be read: the host is not to blame.
func TestRoundTrip_BrokenUpload(t *testing.T) {
	t.Parallel()

	b := setup(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, httpbreaker.Config{})
	errBroken := errors.New("broken")
	for range 5 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url, iotest.ErrReader(errBroken))
		require.NoError(t, err)
		err = b.do(req)
		require.ErrorIs(t, err, errBroken)
		require.Nil(t, breaker.Of(err))
	}
	require.Equal(t, breaker.Closed, b.breaker.State())
}

func TestRoundTrip_HangingHost(t *testing.T) {
	t.Parallel()

	for _, at := range []string{"Headers", "Body", "Connect"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()

			url := listen(t, func(conn net.Conn) {
				if at == "Body" {
					_, _ = conn.Read(make([]byte, 1024))
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin")
				}
				_, _ = io.Copy(io.Discard, conn) // until the client has enough
			})
			if at == "Connect" {
				url = strings.Replace(url, "http:", "https:", 1) // the handshake hangs
			}
			b := setupURL(t, url, httpbreaker.Config{RequestTimeout: 100 * time.Millisecond})
			for range 3 {
				err := b.post(t)
				require.ErrorContains(t, err, "no whole answer in time")
				require.True(t, handler.IsUnavailable(err))
				require.Same(t, b.breaker, breaker.Of(err))
				require.Equal(t, at == "Connect", isNotSent(err))
			}
			require.Equal(t, breaker.Open, b.breaker.State())
			require.Equal(t, "timeout", b.breaker.Stats().LastError)
		})
	}
}

func TestRoundTrip_ConnectTimeout(t *testing.T) {
	t.Parallel()

	url := listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	b := setupURL(t, strings.Replace(url, "http:", "https:", 1), httpbreaker.Config{ConnectTimeout: 50 * time.Millisecond, RequestTimeout: -1})
	err := b.post(t)
	require.ErrorContains(t, err, "handshake timeout")
	require.True(t, isNotSent(err))
	require.Same(t, b.breaker, breaker.Of(err))
	require.Equal(t, "timeout", b.breaker.Stats().LastError)
}

func TestRoundTrip_ResetInTheMiddle(t *testing.T) {
	t.Parallel()

	url := listen(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1024))
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin")
		_ = conn.(*net.TCPConn).SetLinger(0)
	})
	b := setupURL(t, url, httpbreaker.Config{})
	for range 3 {
		err := b.post(t)
		require.True(t, handler.IsUnavailable(err))
		require.False(t, isNotSent(err))
		require.Same(t, b.breaker, breaker.Of(err))
	}
	require.Equal(t, breaker.Open, b.breaker.State(), "headers alone are no answer")
}

// What its caller cancels is no failure, neither before nor behind the headers.
func TestRoundTrip_CallerCancels(t *testing.T) {
	t.Parallel()

	for _, headers := range []bool{false, true} {
		arrived := make(chan struct{})
		b := setup(t, func(w http.ResponseWriter, r *http.Request) {
			if headers {
				_ = http.NewResponseController(w).Flush()
			}
			arrived <- struct{}{}
			<-r.Context().Done()
		}, httpbreaker.Config{})
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url, nil)
			require.NoError(t, err)
			result := make(chan error)
			go func() { result <- b.do(req) }()
			<-arrived
			cancel()
			err = <-result
			require.ErrorIs(t, err, context.Canceled)
			require.Nil(t, breaker.Of(err))
		}
		require.Equal(t, breaker.Closed, b.breaker.State())
		require.Zero(t, b.breaker.Stats().Failures)
	}
}

// Case P4: a hundred at once want a host that is down: three requests have shown it,
// and it is spared all the others.
func TestRoundTrip_ManyAtOnce(t *testing.T) {
	t.Parallel()

	var seen, waited atomic.Int64
	b := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		seen.Add(1)
		w.WriteHeader(503)
	}, httpbreaker.Config{Breaker: breaker.Config{OpenFor: time.Hour}})
	for range 3 {
		require.Error(t, b.post(t))
	}
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			if errors.Is(b.post(t), breaker.ErrOpen) {
				waited.Add(1)
			}
		})
	}
	callers.Wait()
	require.EqualValues(t, 100, waited.Load())
	require.EqualValues(t, 3, seen.Load())
}
