package broker_test

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/broker"
)

// echo is a broker that answers what it is asked, and tells what that was.
func echo(t *testing.T) (address string, asked <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	told := make(chan string, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				b := make([]byte, 100)
				for {
					n, err := conn.Read(b)
					if err != nil {
						_ = conn.Close()
						return
					}
					told <- string(b[:n])
					_, _ = conn.Write(b[:n])
				}
			}()
		}
	}()
	return listener.Addr().String(), told
}

func openGate(t *testing.T) *broker.Gate {
	t.Helper()
	gate, err := broker.OpenGate()
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	return gate
}

func ask(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err := conn.Write([]byte(text))
	require.NoError(t, err)
}

func answer(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	b := make([]byte, len(text))
	_, err := io.ReadFull(conn, b)
	require.NoError(t, err)
	require.Equal(t, text, string(b))
}

func TestGate_Shut(t *testing.T) {
	t.Parallel()
	address, _ := echo(t)
	gate := openGate(t)
	dial := broker.Through(gate.Address(), "relay")
	conn, err := dial(t.Context(), "tcp", address)
	require.NoError(t, err)
	ask(t, conn, "hello")
	answer(t, conn, "hello")

	gate.Shut()

	_, err = io.ReadFull(conn, make([]byte, 1))
	require.Error(t, err, "the connection is cut")
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = dial(t.Context(), "tcp", address)
	require.ErrorContains(t, err, "the gate is shut")

	gate.Open()

	conn, err = dial(t.Context(), "tcp", address)
	require.NoError(t, err)
	ask(t, conn, "again")
	answer(t, conn, "again")
}

// What is sent arrives while answers are held, and only one dialer feels it.
func TestGate_Hold(t *testing.T) {
	t.Parallel()
	address, asked := echo(t)
	gate := openGate(t)
	held, err := broker.Through(gate.Address(), "held")(t.Context(), "tcp", address)
	require.NoError(t, err)
	free, err := broker.Through(gate.Address(), "free")(t.Context(), "tcp", address)
	require.NoError(t, err)

	release := gate.Hold("held")

	ask(t, held, "one")
	require.Equal(t, "one", <-asked)
	ask(t, free, "two")
	require.Equal(t, "two", <-asked)
	answer(t, free, "two")
	require.NoError(t, held.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = held.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	release()

	require.NoError(t, held.SetReadDeadline(time.Now().Add(time.Minute)))
	answer(t, held, "one")
}

// A gate that holds answers for a dialer that is gone can be closed.
func TestGate_CloseWhileHeld(t *testing.T) {
	t.Parallel()
	address, asked := echo(t)
	gate := openGate(t)
	conn, err := broker.Through(gate.Address(), "held")(t.Context(), "tcp", address)
	require.NoError(t, err)
	gate.Hold("held")
	ask(t, conn, "one")
	require.Equal(t, "one", <-asked)

	gate.Close()
}
