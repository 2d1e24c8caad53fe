package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// link is what it takes to reach the broker.
type link struct {
	url            string
	config         amqp.Config
	dial           DialFunc
	name           string // shown in the broker's list of connections
	connectTimeout time.Duration
	requestTimeout time.Duration
	log            *slog.Logger
}

// broker names the broker for people: host and virtual host, no credentials.
func (l link) broker() string {
	uri, err := amqp.ParseURI(l.url)
	if err != nil {
		return "unknown"
	}
	vhost := uri.Vhost
	if l.config.Vhost != "" {
		vhost = l.config.Vhost
	}
	return fmt.Sprintf("%s vhost %q", net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port)), vhost)
}

// connection is one AMQP connection and the socket below it. It lives until
// lost is closed and is never repaired.
//
// The client library has no timeouts of its own once a connection is open, so
// every request goes through [connection.do], and every write has a deadline.
type connection struct {
	amqp    *amqp.Connection
	socket  *socket
	timeout time.Duration

	lost chan struct{} // closed when the connection is
	err  error         // why; may be read once lost is closed

	blocked  atomic.Pointer[string] // the broker's reason for blocking publishers, nil while it does not
	unblocks chan struct{}          // a token when blocked has changed; one is enough, the reader looks at blocked
}

// connect makes a connection, or fails within the connect timeout or when ctx ends.
func (l link) connect(outer context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(outer, l.connectTimeout)
	defer cancel()
	c := &connection{timeout: l.requestTimeout, lost: make(chan struct{}), unblocks: make(chan struct{}, 1)}

	config := l.config
	config.Properties = maps.Clone(config.Properties) // the library writes into it
	if config.Properties == nil {
		config.Properties = amqp.NewConnectionProperties()
	}
	if _, named := config.Properties["connection_name"]; !named {
		config.Properties.SetClientConnectionName(l.name)
	}
	if config.TLSClientConfig != nil {
		config.TLSClientConfig = config.TLSClientConfig.Clone() // and into it
	}
	release := func() bool { return true }
	config.Dial = func(network, addr string) (net.Conn, error) {
		dial := l.dial
		if dial == nil {
			dial = new(net.Dialer).DialContext
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c.socket = &socket{Conn: conn, timeout: l.requestTimeout}
		// The handshake knows no context: closing the socket is what ends it.
		release = context.AfterFunc(ctx, c.kill)
		return c.socket, nil
	}

	var err error
	c.amqp, err = amqp.DialConfig(l.url, config)
	if !release() && err == nil {
		err = ctx.Err() // the socket was closed a moment after the handshake
	}
	if err != nil {
		c.kill() // the library leaves it open after some failures
		switch {
		case outer.Err() != nil:
			err = outer.Err()
		case ctx.Err() != nil:
			err = fmt.Errorf("no answer within %s: %w", l.connectTimeout, ctx.Err())
		}
		return nil, fmt.Errorf("connect to RabbitMQ at %s: %w", l.broker(), err)
	}
	c.watch()
	return c, nil
}

// watch reads both notify channels to their end: the library's reader waits
// for a listener that does not listen, and drops the event after a while.
func (c *connection) watch() {
	// At most one close is ever sent. A blocked and an unblocked may follow each
	// other faster than the goroutine is scheduled.
	closes := c.amqp.NotifyClose(make(chan *amqp.Error, 1))
	blocks := c.amqp.NotifyBlocked(make(chan amqp.Blocking, 2))
	go func() {
		for b := range blocks {
			if b.Active {
				c.blocked.Store(&b.Reason)
			} else {
				c.blocked.Store(nil)
			}
			select {
			case c.unblocks <- struct{}{}:
			default:
			}
		}
	}()
	go func() {
		c.err = amqp.ErrClosed
		for err := range closes {
			c.err = err
		}
		close(c.lost)
	}()
}

// do runs one request. When the broker has not answered within the request
// timeout the connection is given up, which ends the request: there is no
// other way to take back a request that is under way.
func (c *connection) do(what string, request func() error) error {
	var late atomic.Bool
	timer := time.AfterFunc(c.timeout, func() {
		late.Store(true)
		c.kill()
	})
	defer timer.Stop()
	err := request()
	switch {
	case err == nil:
		return nil
	case late.Load():
		return fmt.Errorf("%s: no answer within %s, connection given up: %w", what, c.timeout, err)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// alive reports whether the connection is still of use.
func (c *connection) alive() bool {
	select {
	case <-c.lost:
		return false
	default:
		return true
	}
}

// close says goodbye and waits until the connection has gone.
func (c *connection) close() {
	// The deadline is only the library's; heartbeats push it out, hence do.
	_ = c.do("close the connection", func() error { return c.amqp.CloseDeadline(time.Now().Add(c.timeout)) })
	c.kill()
	<-c.lost
}

// kill closes the socket. Whatever waits for it ends with an error.
func (c *connection) kill() {
	if c.socket != nil {
		_ = c.socket.Close()
	}
}

// channel is one AMQP channel. It lives until lost is closed and is never
// repaired.
type channel struct {
	*amqp.Channel
	conn *connection

	lost      chan struct{} // closed when the channel is
	err       error         // why; may be read once lost is closed
	cancelled chan struct{} // closed when the broker has cancelled our consumer
}

// channel opens a channel.
func (c *connection) channel() (*channel, error) {
	ch := &channel{conn: c, lost: make(chan struct{}), cancelled: make(chan struct{})}
	err := c.do("open a channel", func() (err error) {
		ch.Channel, err = c.amqp.Channel()
		return err
	})
	if err != nil {
		return nil, err
	}
	// At most one close is ever sent, and a channel of ours has one consumer.
	closes := ch.NotifyClose(make(chan *amqp.Error, 1))
	cancels := ch.NotifyCancel(make(chan string, 1))
	go func() {
		ch.err = amqp.ErrClosed
		for err := range closes {
			ch.err = err
		}
		close(ch.lost)
	}()
	go func() {
		first := true
		for range cancels {
			if first {
				close(ch.cancelled)
			}
			first = false
		}
	}()
	return ch, nil
}

// do runs one request on the channel. If it fails because the channel has
// ended, the error says why it has.
func (ch *channel) do(what string, request func() error) error {
	err := ch.conn.do(what, request)
	if errors.Is(err, amqp.ErrClosed) && ch.IsClosed() {
		<-ch.lost
		return fmt.Errorf("%s: %w", what, ch.err)
	}
	return err
}

// socket bounds every write. The library holds a lock while it writes and needs
// the same lock to shut the connection down, so without this a peer that stops
// reading would keep even a missed heartbeat from ending the connection.
type socket struct {
	net.Conn
	timeout time.Duration
}

// Write implements [net.Conn].
func (s *socket) Write(b []byte) (int, error) {
	if err := s.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return 0, err
	}
	return s.Conn.Write(b)
}
