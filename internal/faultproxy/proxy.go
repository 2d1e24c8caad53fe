// Package faultproxy is a TCP proxy whose connections a test can break.
package faultproxy

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Proxy forwards connections to one server and breaks them on command. It is
// safe for concurrent use and ends with its test.
type Proxy struct {
	upstream  string
	framing   Framing // zero: bytes
	listener  net.Listener
	refuse    atomic.Bool
	blackHole atomic.Bool
	rule      atomic.Pointer[rule]
	ambush    atomic.Pointer[Ambush]
	running   sync.WaitGroup // the accept loop and all links

	// mu guards the fields below.
	mu     sync.Mutex
	links  map[*link]struct{}
	flow   chan struct{} // closed while bytes flow, open while paused
	paused bool
	closed bool
}

// New starts a proxy before the server at upstream (host:port).
func New(tb testing.TB, upstream string) *Proxy {
	tb.Helper()
	return start(tb, upstream, Framing{})
}

func start(tb testing.TB, upstream string, framing Framing) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	p := &Proxy{upstream: upstream, framing: framing, listener: listener, links: map[*link]struct{}{}, flow: make(chan struct{})}
	close(p.flow)
	p.running.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Addr is the host:port to connect to instead of the server's.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Links is how many connections there are.
func (p *Proxy) Links() int { return len(p.current()) }

// Cut closes all connections now, whatever is on its way in them.
func (p *Proxy) Cut() {
	for _, l := range p.current() {
		l.cut()
	}
}

// Refuse closes new connections as soon as they are made, until it is called
// with false. Those that exist stay.
func (p *Proxy) Refuse(on bool) { p.refuse.Store(on) }

// BlackHole swallows what new connections send and never answers, until it is
// called with false. A connection made meanwhile stays in the hole until it is
// cut; those made before are not touched (see [Proxy.Pause]).
func (p *Proxy) BlackHole(on bool) { p.blackHole.Store(on) }

// Pause stops forwarding, both ways, in all connections. Bytes wait; none are
// lost.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.paused && !p.closed {
		p.paused = true
		p.flow = make(chan struct{})
	}
}

// Resume ends a [Proxy.Pause].
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused {
		p.paused = false
		close(p.flow)
	}
}

// CutReply lies in wait for bytes from a client for which match is true, such
// as a COMMIT. It lets the server have them, and closes the client's
// connection before any answer comes back. Then the returned channel is
// closed, and later bytes pass again.
//
// What match sees ends with the bytes just sent and begins up to 256 bytes
// before them, so that a word in two packets is found; bytes from before the
// call are not in it. It is called from several goroutines. A new call, also
// with nil, replaces the one before. A proxy that knows its protocol has
// [Proxy.Ambush] instead.
func (p *Proxy) CutReply(match func(clientBytes []byte) bool) <-chan struct{} {
	if match == nil {
		p.rule.Store(nil)
		return nil
	}
	r := &rule{match: match, done: make(chan struct{})}
	p.rule.Store(r)
	return r.done
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		l := &link{proxy: p, client: conn.(*net.TCPConn), done: make(chan struct{})}
		if !p.add(l) {
			_ = conn.Close()
			continue
		}
		p.running.Go(func() {
			defer p.remove(l)
			if p.blackHole.Load() {
				l.swallow()
			} else {
				l.forward(p.upstream)
			}
		})
	}
}

// add keeps a new link, unless it is refused. It asks under the lock, so that
// no link slips in behind a Cut that follows Refuse.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.refuse.Load() {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	l.cut()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) current() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

func (p *Proxy) flowing() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flow
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.running.Wait()
}

// dialTimeout only keeps a test from hanging: upstream is a server that the
// test knows to be there.
const dialTimeout = 10 * time.Second
