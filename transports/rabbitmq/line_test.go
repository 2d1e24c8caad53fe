package rabbitmq_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

var errLineDown = errors.New("line is down")

// line is the network between a source or publisher and the broker, in the
// hands of a test: its dial is the DialFunc. It knows where AMQP frames begin,
// so that it can stop them, or slip one in.
type line struct {
	silent bool // connections are black holes from the beginning

	mu    sync.Mutex // guards the fields below
	down  bool
	dials int
	wires []*wire
	acks  []ack // as they were sent
}

// ack is an acknowledgement on its way to the broker.
type ack struct {
	tag      uint64
	multiple bool
}

func (l *line) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials++
	if l.down {
		return nil, errLineDown
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w := newWire(conn)
	w.sees = l.note
	if l.silent {
		w.blackHole()
	}
	l.wires = append(l.wires, w)
	return w, nil
}

// cut ends all connections without a word; down also refuses new ones until
// restore.
func (l *line) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for _, w := range l.wires {
		_ = w.Close()
	}
	l.wires = nil
}

// note looks for acknowledgements in what is sent: the client library writes
// whole frames, as long as they are small.
func (l *line) note(sent []byte) {
	const head, basic, basicAck = 7, 60, 80
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(sent) > head {
		kind, size := sent[0], int(binary.BigEndian.Uint32(sent[3:head]))
		if len(sent) < head+size {
			return
		}
		frame := sent[head : head+size]
		if kind == 1 && binary.BigEndian.Uint16(frame) == basic && binary.BigEndian.Uint16(frame[2:]) == basicAck {
			l.acks = append(l.acks, ack{binary.BigEndian.Uint64(frame[4:]), frame[12] == 1})
		}
		sent = sent[min(head+size+1, len(sent)):]
	}
}

func (l *line) acknowledged() []ack {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acks)
}

func (l *line) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

func (l *line) dialled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dials
}

// each does something to every connection that is open.
func (l *line) each(do func(*wire)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.wires {
		do(w)
	}
}

// wire is one connection on a line.
type wire struct {
	net.Conn
	arrivals *io.PipeReader // whole frames from the broker
	slip     *io.PipeWriter // its other end; one write at a time passes
	closed   chan struct{}
	once     sync.Once
	sees     func(sent []byte) // called before each write

	mu       sync.Mutex // guards the fields below
	pass     sync.Cond  // signalled when deaf becomes false, on mu
	deaf     bool       // nothing from the broker arrives
	mute     bool       // nothing sent arrives at the broker
	stalled  bool       // the broker reads nothing any more, so writes block
	deadline time.Time  // of writes
}

func newWire(conn net.Conn) *wire {
	r, w := io.Pipe()
	c := &wire{Conn: conn, arrivals: r, slip: w, closed: make(chan struct{})}
	c.pass.L = &c.mu
	go func() { w.CloseWithError(c.carry(w)) }()
	return c
}

// carry passes on the broker's frames.
func (w *wire) carry(to io.Writer) error {
	for {
		head := make([]byte, 7) // type, channel, size
		if _, err := io.ReadFull(w.Conn, head); err != nil {
			return err
		}
		rest := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(w.Conn, rest); err != nil {
			return err
		}
		w.mu.Lock()
		for w.deaf {
			w.pass.Wait()
		}
		w.mu.Unlock()
		if _, err := to.Write(append(head, rest...)); err != nil {
			return err
		}
	}
}

func (w *wire) Read(b []byte) (int, error) { return w.arrivals.Read(b) }

func (w *wire) Write(b []byte) (int, error) {
	w.sees(b)
	w.mu.Lock()
	mute, stalled, deadline := w.mute, w.stalled, w.deadline
	w.mu.Unlock()
	switch {
	case stalled:
		var late <-chan time.Time // for ever, as TCP does
		if !deadline.IsZero() {
			late = time.After(time.Until(deadline))
		}
		select {
		case <-late:
			return 0, os.ErrDeadlineExceeded
		case <-w.closed:
			return 0, net.ErrClosed
		}
	case mute:
		return len(b), nil
	default:
		return w.Conn.Write(b)
	}
}

func (w *wire) SetDeadline(t time.Time) error {
	_ = w.SetWriteDeadline(t)
	return w.Conn.SetDeadline(t)
}

func (w *wire) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = t
	return w.Conn.SetWriteDeadline(t)
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	w.setDeaf(false)
	_ = w.arrivals.Close()
	return w.Conn.Close()
}

func (w *wire) setDeaf(deaf bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf = deaf
	w.pass.Broadcast()
}

// blackHole makes the broker silent: nothing arrives any more in either
// direction, and nobody is told.
func (w *wire) blackHole() {
	w.setDeaf(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute = true
}

// stall is a black hole whose buffers are full.
func (w *wire) stall() {
	w.blackHole()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stalled = true
}

// slipIn gives the client a method frame that claims to be the broker's, about
// the connection itself.
func (w *wire) slipIn(class, method uint16, arguments []byte) {
	frame := []byte{1, 0, 0}
	frame = binary.BigEndian.AppendUint32(frame, uint32(4+len(arguments)))
	frame = binary.BigEndian.AppendUint16(frame, class)
	frame = binary.BigEndian.AppendUint16(frame, method)
	_, _ = w.slip.Write(append(append(frame, arguments...), 0xCE))
}
