package main

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// tripDelay is the network that the remote benchmark puts between.
const tripDelay = 500 * time.Microsecond

// dialWithDelay opens connections whose round trips take tripDelay longer.
func dialWithDelay(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &delayedConn{Conn: conn}, nil
}

// delayedConn waits before it writes something after it has read something:
// that is where a round trip begins. It waits in the system call, because
// time.Sleep overshoots in a process that is nearly idle, and would make round
// trips look dearer than they are.
type delayedConn struct {
	net.Conn
	answered atomic.Bool
}

// Write implements [net.Conn].
func (c *delayedConn) Write(b []byte) (int, error) {
	if c.answered.Swap(false) {
		wait := syscall.NsecToTimespec(int64(tripDelay))
		for syscall.Nanosleep(&wait, &wait) == syscall.EINTR { // the rest of it, after a signal
		}
	}
	return c.Conn.Write(b)
}

// Read implements [net.Conn].
func (c *delayedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.answered.Store(true)
	}
	return n, err
}
