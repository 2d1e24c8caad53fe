package faultproxy_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/semel-go/semel/internal/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

func TestProxy_Forwards(t *testing.T) {
	t.Parallel()
	p, _ := setup(t)

	big := bytes.Repeat([]byte("0123456789"), 1<<20)
	conn := dial(t, p)
	go func() {
		_, _ = conn.Write(append(big, '\n'))
		_ = conn.CloseWrite()
	}()
	got, err := io.ReadAll(conn)

	require.NoError(t, err) // the end of one side reaches the other
	require.Equal(t, append(big, '\n'), got)
}

func TestProxy_Cut(t *testing.T) {
	t.Parallel()
	p, _ := setup(t)
	first, second := dial(t, p), dial(t, p)
	requireEcho(t, first)
	requireEcho(t, second)

	p.Cut()

	requireClosed(t, first)
	requireClosed(t, second)
	requireEcho(t, dial(t, p)) // new ones are not touched
}

func TestProxy_Refuse(t *testing.T) {
	t.Parallel()
	p, _ := setup(t)
	old := dial(t, p)
	requireEcho(t, old)

	p.Refuse(true)
	requireClosed(t, dial(t, p))
	requireEcho(t, old)

	p.Refuse(false)
	requireEcho(t, dial(t, p))
}

func TestProxy_UpstreamDown(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())

	requireClosed(t, dial(t, faultproxy.New(t, l.Addr().String())))
}

func TestProxy_BlackHole(t *testing.T) {
	t.Parallel()
	p, server := setup(t)

	p.BlackHole(true)
	lost := dial(t, p)
	_, err := lost.Write(bytes.Repeat([]byte("lost\n"), 1<<20)) // more than buffers hold: it is read
	require.NoError(t, err)
	requireSilence(t, lost)

	p.BlackHole(false)
	requireSilence(t, lost)
	requireEcho(t, dial(t, p))
	require.NotContains(t, server.lines(), "lost")

	p.Cut()
	requireClosed(t, lost)
}

func TestProxy_Pause(t *testing.T) {
	t.Parallel()
	p, server := setup(t)
	conn := dial(t, p)
	requireEcho(t, conn)

	p.Pause()
	p.Pause()
	_, err := conn.Write([]byte("held\n"))
	require.NoError(t, err)
	requireSilence(t, conn)
	require.NotContains(t, server.lines(), "held")

	p.Resume()
	p.Resume()
	require.Equal(t, "held", readLine(t, conn))
}

func TestProxy_CutWhilePaused(t *testing.T) {
	t.Parallel()
	p, server := setup(t)
	conn := dial(t, p)
	requireEcho(t, conn)

	p.Pause()
	_, err := conn.Write([]byte("held\n"))
	require.NoError(t, err)
	p.Cut()
	requireClosed(t, conn)
	p.Resume()

	requireEcho(t, dial(t, p))
	require.NotContains(t, server.lines(), "held")
}

func TestProxy_CutReply(t *testing.T) {
	t.Parallel()
	p, server := setup(t)
	conn, other := dial(t, p), dial(t, p)
	_, err := conn.Write([]byte("commit before\n")) // sent before the call: does not count
	require.NoError(t, err)
	require.Equal(t, "commit before", readLine(t, conn))

	cut := p.CutReply(func(b []byte) bool { return bytes.Contains(b, []byte("commit now")) })
	requireEcho(t, conn)
	_, err = conn.Write([]byte("com"))
	require.NoError(t, err)
	_, err = io.ReadFull(conn, make([]byte, len("com"))) // so the word comes in two packets
	require.NoError(t, err)
	_, err = conn.Write([]byte("mit now\n"))
	require.NoError(t, err)

	requireClosed(t, conn) // with no byte of an answer
	select {
	case <-cut:
	case <-time.After(patience):
		require.Fail(t, "the cut was not reported")
	}
	server.waitFor(t, "commit now")

	requireEcho(t, other) // only the one connection, and only once
	_, err = other.Write([]byte("commit now\n"))
	require.NoError(t, err)
	require.Equal(t, "commit now", readLine(t, other))
}

func TestProxy_CutReply_Withdrawn(t *testing.T) {
	t.Parallel()
	p, _ := setup(t)

	p.CutReply(func([]byte) bool { return true })
	p.CutReply(nil)

	requireEcho(t, dial(t, p))
}

// echo is a server that sends back what it gets, and remembers it.
type echo struct {
	mu   sync.Mutex // guards got
	got  bytes.Buffer
	done sync.WaitGroup
}

func setup(t *testing.T) (*faultproxy.Proxy, *echo) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e := new(echo)
	e.done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			e.done.Go(func() {
				defer func() { _ = conn.Close() }()
				_, _ = io.Copy(conn, io.TeeReader(conn, e))
			})
		}
	})
	t.Cleanup(func() { // runs after the proxy's own: its connections are gone
		require.NoError(t, listener.Close())
		e.done.Wait()
	})
	return faultproxy.New(t, listener.Addr().String()), e
}

func (e *echo) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got.Write(p)
}

func (e *echo) lines() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got.String()
}

func (e *echo) waitFor(t *testing.T, end string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.HasSuffix(strings.TrimSpace(e.lines()), end) }, patience, time.Millisecond)
}

func dial(t *testing.T, p *faultproxy.Proxy) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn.(*net.TCPConn)
}

func requireEcho(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := conn.Write([]byte("ping\n"))
	require.NoError(t, err)
	require.Equal(t, "ping", readLine(t, conn))
}

func readLine(t *testing.T, conn net.Conn) string {
	t.Helper()
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSuffix(line, "\n")
}

// requireClosed requires that the connection ends, with nothing more to read.
func requireClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	n, err := conn.Read(make([]byte, 1))
	require.Zero(t, n, "read a byte")
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection is still open")
}

// requireSilence requires that nothing comes for a short while. A proxy that
// forwards would answer on loopback within microseconds.
func requireSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	n, err := conn.Read(make([]byte, 1))
	require.Zero(t, n, "read a byte")
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
}
