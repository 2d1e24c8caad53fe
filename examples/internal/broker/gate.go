package broker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// errShut is what a dialer gets while the gate is shut.
var errShut = errors.New("connection refused: the gate is shut")

const gateTimeout = 5 * time.Second

// Gate is the way of an example's processes to the brokers, whichever these
// are, so that the example can take the brokers away. Make one with
// [OpenGate]; dial with [Through]. It is safe for concurrent use.
type Gate struct {
	listener net.Listener
	working  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	change *sync.Cond // of held and conns
	shut   bool
	closed bool
	held   string // whose answers are held back
	conns  map[net.Conn]bool
}

// OpenGate opens a gate on loopback.
func OpenGate() (*Gate, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a gate to the brokers: %w", err)
	}
	g := &Gate{listener: listener, conns: make(map[net.Conn]bool)}
	g.change = sync.NewCond(&g.mu)
	g.working.Go(g.accept)
	return g, nil
}

// Address is where other processes find the gate.
func (g *Gate) Address() string { return g.listener.Addr().String() }

// Shut takes the brokers away: it cuts every connection, and refuses new ones.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	for conn := range g.conns {
		_ = conn.Close()
	}
}

// Open lets connections through again.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
}

// Hold holds back what the brokers answer to one dialer, until release: what it
// sends arrives, and it does not learn of it.
func (g *Gate) Hold(name string) (release func()) {
	hold := func(name string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.held = name
		g.change.Broadcast()
	}
	hold(name)
	return func() { hold("") }
}

// Close ends the gate and every connection through it.
func (g *Gate) Close() {
	g.Shut()
	g.mu.Lock()
	g.closed = true
	g.change.Broadcast()
	g.mu.Unlock()
	_ = g.listener.Close()
	g.working.Wait()
}

func (g *Gate) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return // closed
		}
		g.working.Go(func() { g.serve(conn) })
	}
}

// serve connects a dialer with the broker that it names in the first line.
func (g *Gate) serve(client net.Conn) {
	defer g.forget(client)
	if !g.remember(client) {
		return
	}
	_ = client.SetDeadline(time.Now().Add(gateTimeout))
	requests := bufio.NewReader(client)
	line, err := requests.ReadString('\n')
	name, address, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	if err != nil || !ok {
		return
	}
	broker, err := net.DialTimeout("tcp", address, gateTimeout)
	if err != nil {
		return
	}
	defer g.forget(broker)
	if !g.remember(broker) {
		return
	}
	if _, err := client.Write([]byte{'\n'}); err != nil {
		return
	}
	_ = client.SetDeadline(time.Time{})

	var answers sync.WaitGroup
	answers.Go(func() {
		defer client.Close() //nolint:errcheck // the other direction ends with it
		_, _ = io.Copy(heldWriter{g, name, client}, broker)
	})
	_, _ = io.Copy(broker, requests)
	_ = broker.Close()
	g.mu.Lock()
	delete(g.conns, client) // nobody waits for an answer any more
	g.change.Broadcast()
	g.mu.Unlock()
	answers.Wait()
}

// remember makes a connection one that Shut cuts. It returns false when it is
// shut.
func (g *Gate) remember(conn net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.conns[conn] = true
	return true
}

func (g *Gate) forget(conn net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, conn)
	_ = conn.Close()
}

// heldWriter writes to a dialer, unless what it is to get is held back.
type heldWriter struct {
	gate *Gate
	name string
	conn net.Conn
}

func (w heldWriter) Write(b []byte) (int, error) {
	g := w.gate
	g.mu.Lock()
	for g.held == w.name && g.conns[w.conn] && !g.closed {
		g.change.Wait()
	}
	g.mu.Unlock()
	return w.conn.Write(b)
}

// Through returns a dialer, for kgo.Dialer, that goes through the gate at an
// address. The name is for [Gate.Hold].
func Through(gate, name string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: gateTimeout}).DialContext(ctx, network, gate)
		if err != nil {
			return nil, err
		}
		_ = conn.SetDeadline(time.Now().Add(2 * gateTimeout))
		_, err = fmt.Fprintf(conn, "%s %s\n", name, address)
		if err == nil {
			_, err = io.ReadFull(conn, make([]byte, 1))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("reach %s: %w", address, errShut), conn.Close())
		}
		_ = conn.SetDeadline(time.Time{})
		return conn, nil
	}
}
