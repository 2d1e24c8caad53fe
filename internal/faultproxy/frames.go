package faultproxy

import "net"

// carryFrames carries whole frames from one side to the other, until one falls
// into an ambush.
func (l *link) carryFrames(side Side, from, to *net.TCPConn) {
	var waiting []byte // the beginning of a frame
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !l.wait() {
			return
		}
		waiting = append(waiting, buf[:n]...)
		passing, a := l.inspect(side, waiting)
		if a != nil {
			l.spring(a, waiting[:passing])
			return
		}
		if err != nil {
			passing = len(waiting)
		}
		if _, errWrite := to.Write(waiting[:passing]); errWrite != nil && side == FromClient {
			l.cut() // a client that is gone does not end what the server still says
		}
		waiting = append(waiting[:0], waiting[passing:]...)
		if err != nil {
			l.endOf(err, to)
			return
		}
	}
}

// inspect shows the whole frames in b to the ambush. It returns how many bytes
// may pass, and the ambush if they are the last.
func (l *link) inspect(side Side, b []byte) (passing int, sprung *Ambush) {
	size := l.proxy.framing.Client
	if side == FromServer {
		size = l.proxy.framing.Server
	}
	a := l.proxy.ambush.Load()
	for passing < len(b) {
		rest := b[passing:]
		n := max(size(rest), 1) // a protocol that is not the one expected passes byte by byte
		if n > len(rest) {
			break
		}
		if a.meets(side, rest[:n]) {
			return passing + a.passes(rest[:n]), a
		}
		passing += n
	}
	return passing, nil
}

// spring lets the last bytes pass and cuts the connection.
func (l *link) spring(a *Ambush, last []byte) {
	defer close(a.sprung)
	if a.side == FromServer {
		_, _ = l.client.Write(last)
		l.cut()
		return
	}
	_ = l.client.Close() // first: no answer is that fast
	_, _ = l.server.Write(last)
	// A clean end, or bytes could be lost that the server has not read yet. The
	// other direction goes on, so that the server can end in peace.
	_ = l.server.CloseWrite()
}
