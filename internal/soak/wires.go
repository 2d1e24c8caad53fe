package main

import (
	"context"
	"net"
	"sync"
)

// wires are the TCP connections to a broker, so that they can be cut without a
// word, as a firewall does it. It is safe for concurrent use.
type wires struct {
	mu   sync.Mutex // guards open
	open map[*wire]struct{}
}

type wire struct {
	net.Conn
	of *wires
}

func newWires() *wires { return &wires{open: map[*wire]struct{}{}} }

func (w *wires) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	one := &wire{conn, w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[one] = struct{}{}
	return one, nil
}

// cut resets all connections that are open now.
func (w *wires) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.open {
		if tcp, ok := one.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = one.Conn.Close()
	}
}

// Close implements [net.Conn].
func (w *wire) Close() error {
	w.of.mu.Lock()
	delete(w.of.open, w)
	w.of.mu.Unlock()
	return w.Conn.Close()
}
