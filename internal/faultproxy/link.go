package faultproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// link is one client's connection and the one to the server that belongs to it.
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	done   chan struct{}

	// mu guards the fields below.
	mu     sync.Mutex
	ended  bool
	server *net.TCPConn // nil until connected, and in a black hole
}

// rule is one pending CutReply.
type rule struct {
	match func([]byte) bool
	done  chan struct{}
}

// cut closes both connections; repeated calls do nothing.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.done)
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// swallow reads what the client sends, to no end, until it goes or is cut.
func (l *link) swallow() {
	_, _ = io.Copy(io.Discard, l.client)
}

// forward connects to the server and carries bytes until both sides are done.
func (l *link) forward(upstream string) {
	server, ok := l.connect(upstream)
	if !ok {
		return
	}
	up, down := func() { l.carryUp(server) }, func() { l.carryDown(server) }
	if l.proxy.framing.Client != nil {
		up = func() { l.carryFrames(FromClient, l.client, server) }
		down = func() { l.carryFrames(FromServer, server, l.client) }
	}
	var both sync.WaitGroup
	both.Go(up)
	both.Go(down)
	both.Wait()
}

func (l *link) connect(upstream string) (*net.TCPConn, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	go func() { // a cut ends the dialling too
		select {
		case <-l.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", upstream)
	if err != nil {
		return nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = conn.Close()
		return nil, false
	}
	l.server = conn.(*net.TCPConn)
	return l.server, true
}

// carryUp carries bytes from client to server, and looks at them for CutReply.
func (l *link) carryUp(server *net.TCPConn) {
	var seen window
	buf := make([]byte, 32<<10)
	for {
		n, err := l.client.Read(buf)
		if n > 0 && !l.wait() {
			return
		}
		r := seen.hit(&l.proxy.rule, buf[:n])
		if r != nil {
			_ = l.client.Close() // first: no answer is that fast
		}
		if _, errWrite := server.Write(buf[:n]); errWrite != nil {
			l.cut()
		}
		if r != nil {
			// The server gets all bytes and a clean end. Closing that side
			// hard could take bytes away that it has not read yet.
			_ = server.CloseWrite()
			close(r.done)
			return
		}
		if err != nil {
			l.endOf(err, server)
			return
		}
	}
}

// carryDown carries bytes from server to client. A client that is gone does not
// end it: what the server still says is read, so that it can end in peace.
func (l *link) carryDown(server *net.TCPConn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := server.Read(buf)
		if n > 0 && !l.wait() {
			return
		}
		_, _ = l.client.Write(buf[:n])
		if err != nil {
			l.endOf(err, l.client)
			return
		}
	}
}

// endOf passes the end of one direction on: a clean end as such, for the other
// direction may go on, and anything else as a cut.
func (l *link) endOf(err error, to *net.TCPConn) {
	if errors.Is(err, io.EOF) {
		_ = to.CloseWrite()
		return
	}
	l.cut()
}

// wait blocks while the proxy is paused. It is false when the link was cut.
func (l *link) wait() bool {
	select {
	case <-l.proxy.flowing():
		return true
	case <-l.done:
		return false
	}
}

// window is the end of what a client has sent since a rule was set.
type window struct {
	rule  *rule
	bytes []byte
}

// windowSize is how far back a rule sees.
const windowSize = 256

// hit shows sent to the current rule. If it matches, and no other connection
// was faster, the rule is returned and no longer set.
func (w *window) hit(current *atomic.Pointer[rule], sent []byte) *rule {
	r := current.Load()
	if r != w.rule {
		w.rule, w.bytes = r, nil
	}
	if r == nil || len(sent) == 0 {
		return nil
	}
	w.bytes = append(w.bytes, sent...)
	if r.match(w.bytes) && current.CompareAndSwap(r, nil) {
		return r
	}
	if extra := len(w.bytes) - windowSize; extra > 0 {
		w.bytes = append(w.bytes[:0], w.bytes[extra:]...)
	}
	return nil
}
