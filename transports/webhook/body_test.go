package webhook_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/transports/webhook"
)

const patience = time.Minute

// served is a handler behind a real server, spoken to byte by byte.
func served(t *testing.T, b *testBundle) net.Conn {
	t.Helper()
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	return dial(t, server)
}

func dial(t *testing.T, server *httptest.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}

func send(t *testing.T, conn net.Conn, format string, args ...any) {
	t.Helper()
	_, err := fmt.Fprintf(conn, format, args...)
	require.NoError(t, err)
}

func answer(t *testing.T, conn net.Conn) (status int, text string) {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, strings.TrimSpace(string(raw))
}

// A body that says it is too large is refused before a byte of it is read, and its
// sender is not waited for.
func TestBody_DeclaredTooLarge(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	b := setup(t, p.preset(p.secrets[0]), webhook.Config{ReadTimeout: 100 * time.Millisecond})
	conn := served(t, b)

	send(t, conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", 1<<20+1)

	status, text := answer(t, conn)
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Equal(t, "body is too large", text)
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the connection is closed")
}

// One that does not say so is read up to the limit.
func TestBody_TooLarge(t *testing.T) {
	t.Parallel()

	for _, size := range []int{100, 101, 5000} {
		p := providers()[0]
		preset := p.preset(p.secrets[0])
		b := setup(t, preset, webhook.Config{MaxBody: 100})
		r := p.request(t, preset, strings.Repeat("x", size), signedAt)
		r.ContentLength = -1
		r.Header.Del("Content-Length")

		w := b.serve(r)

		if size == 100 {
			require.Equal(t, http.StatusOK, w.Code)
			continue
		}
		require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
		require.Equal(t, webhook.Stats{TooLarge: 1}, b.Stats())
		require.Empty(t, b.shelf.stored())
	}
}

// A sender that says nothing holds nothing: not while its body is read, and not while
// it is refused.
func TestBody_Slow(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, head string
		status     int
	}{
		{name: "Body", head: "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", status: http.StatusRequestTimeout},
		{name: "Chunk", head: "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", status: http.StatusRequestTimeout},
		{name: "Refused", head: "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{", status: http.StatusMethodNotAllowed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			p := providers()[0]
			b := setup(t, p.preset(p.secrets[0]), webhook.Config{ReadTimeout: 100 * time.Millisecond})
			conn := served(t, b)

			send(t, conn, "%s", tt.head)

			status, _ := answer(t, conn)
			require.Equal(t, tt.status, status)
			_, err := conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "the connection is closed")
			require.Empty(t, b.shelf.stored())
		})
	}
}

// A body that is broken off or wrongly framed is none.
func TestBody_Torn(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	b := setup(t, p.preset(p.secrets[0]), webhook.Config{})
	conn := served(t, b)

	send(t, conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")

	status, text := answer(t, conn)
	require.Equal(t, http.StatusBadRequest, status)
	require.Equal(t, "body could not be read", text)
	require.Equal(t, webhook.Stats{Torn: 1}, b.Stats())

	r := p.unsigned("")
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"id":`), broken{}))
	b.requireRefused(t, http.StatusBadRequest, "body could not be read", r)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset with some content") }

// Case H2: chunked. The frames are the connection's, the bytes in them the provider's.
func TestBody_Chunked(t *testing.T) {
	t.Parallel()

	eachProvider(t, func(t *testing.T, p provider) {
		preset := p.preset(p.secrets[0])
		b := setup(t, preset, webhook.Config{})
		conn := served(t, b)
		send(t, conn, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n")
		for name, lines := range p.request(t, preset, body, signedAt).Header {
			send(t, conn, "%s: %s\r\n", name, lines[0])
		}
		send(t, conn, "\r\n")
		for i := range len(body) {
			send(t, conn, "1\r\n%s\r\n", body[i:i+1])
		}
		send(t, conn, "0\r\n\r\n")

		status, text := answer(t, conn)

		require.Equal(t, http.StatusOK, status, text)
		require.Empty(t, text)
		require.Equal(t, body, string(b.shelf.stored()[0].Payload))
	})
}

// HTTP/2 has no connection of its own for a body: the deadline is the stream's, and the
// next request on the connection knows nothing of it.
func TestBody_HTTP2(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	preset := p.preset(p.secrets[0])
	const readTimeout = 100 * time.Millisecond
	b := setup(t, preset, webhook.Config{ReadTimeout: readTimeout})
	server := httptest.NewUnstartedServer(b)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	client := server.Client()
	client.Timeout = patience
	post := func(payload io.Reader, closer io.Closer) int {
		r := p.request(t, preset, body, signedAt)
		r.Body, r.ContentLength, r.RequestURI = struct {
			io.Reader
			io.Closer
		}{payload, closer}, -1, ""
		var err error
		r.URL, err = r.URL.Parse(server.URL)
		require.NoError(t, err)
		response, err := client.Do(r)
		require.NoError(t, err)
		require.Equal(t, 2, response.ProtoMajor)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}

	silent, _ := io.Pipe()
	require.Equal(t, http.StatusRequestTimeout, post(io.MultiReader(strings.NewReader("{"), silent), silent))
	b.shelf.fail = func(context.Context) error {
		passes := time.NewTimer(2 * readTimeout) // what is tested is that time passes
		<-passes.C
		return nil
	}
	for range 2 {
		require.Equal(t, http.StatusOK, post(strings.NewReader(body), io.NopCloser(nil)))
	}
	require.Equal(t, webhook.Stats{Slow: 1, Stored: 1, Duplicate: 1}, b.Stats())
}

// The deadline of a body is not that of storing it, nor of the next request on the
// connection.
func TestBody_DeadlineEnds(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	preset := p.preset(p.secrets[0])
	const readTimeout = 100 * time.Millisecond
	b := setup(t, preset, webhook.Config{ReadTimeout: readTimeout})
	var hungUp atomic.Bool
	b.shelf.fail = func(context.Context) error {
		passes := time.NewTimer(2 * readTimeout) // what is tested is that time passes
		<-passes.C
		return nil
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.ServeHTTP(w, r)
		hungUp.Store(hungUp.Load() || r.Context().Err() != nil)
	}))
	t.Cleanup(server.Close)
	conn := dial(t, server)
	for range 3 {
		require.NoError(t, p.request(t, preset, body, signedAt).Write(conn))
		status, text := answer(t, conn)
		require.Equal(t, http.StatusOK, status, text)
	}
	require.Equal(t, webhook.Stats{Stored: 1, Duplicate: 2}, b.Stats())
	require.False(t, hungUp.Load(), "nobody has hung up")
}
