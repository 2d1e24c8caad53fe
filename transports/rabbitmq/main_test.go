package rabbitmq_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/rabbitmq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 30 * time.Second
	tick     = 5 * time.Millisecond
)

var errGiveBack = errors.New("give it back")

// testBundle is a queue of our own on the real broker, and a plain connection
// to look at it with.
type testBundle struct {
	url     string
	queue   string
	channel *amqp.Channel
}

func brokerURL(t *testing.T) string {
	t.Helper()
	url := os.Getenv("AMQP_URL")
	if url == "" {
		t.Skip("AMQP_URL names no RabbitMQ")
	}
	return url
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{url: brokerURL(t), queue: "semel-test-" + rand.Text()}
	conn, err := amqp.Dial(b.url)
	require.NoError(t, err)
	b.channel, err = conn.Channel()
	require.NoError(t, err)
	b.declare(t, nil)
	t.Cleanup(func() {
		_, err := b.channel.QueueDelete(b.queue, false, false, false)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	})
	return b
}

func (b *testBundle) declare(t *testing.T, args amqp.Table) {
	t.Helper()
	_, err := b.channel.QueueDeclare(b.queue, true, false, false, false, args)
	require.NoError(t, err)
}

// publish sends as a client that is not ours would.
func (b *testBundle) publish(t *testing.T, messages ...amqp.Publishing) {
	t.Helper()
	for _, p := range messages {
		require.NoError(t, b.channel.PublishWithContext(t.Context(), "", b.queue, true, false, p))
	}
}

// requireEmpty requires that the queue, with no consumer left, holds nothing.
func (b *testBundle) requireEmpty(t *testing.T) {
	t.Helper()
	require.Equal(t, 0, b.ready(t), "messages left in the queue")
}

func (b *testBundle) ready(t *testing.T) int {
	t.Helper()
	q, err := b.channel.QueueDeclarePassive(b.queue, true, false, false, false, nil)
	require.NoError(t, err)
	return q.Messages
}

func (b *testBundle) sourceConfig() rabbitmq.SourceConfig {
	return rabbitmq.SourceConfig{URL: b.url, Queue: b.queue, Logger: quietLogger()}
}

func (b *testBundle) newPublisher(t *testing.T, config rabbitmq.PublisherConfig) *rabbitmq.Publisher {
	t.Helper()
	if config.URL == "" {
		config.URL = b.url
	}
	if config.RoutingKey == nil {
		config.RoutingKey = func(*handler.Message) string { return b.queue }
	}
	config.Logger = quietLogger()
	p := rabbitmq.NewPublisher(config)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, p.Close(ctx))
	})
	return p
}

// quietLogger keeps what tests provoke out of their output.
func quietLogger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// line is a network that a test can cut: the dial function of a source.
type line struct {
	mu    sync.Mutex // guards the fields below
	down  bool
	conns []net.Conn
}

var errLineDown = errors.New("line is down")

func (l *line) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errLineDown
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

// cut ends all connections without a word; down also refuses new ones.
func (l *line) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.conns = nil
}

func (l *line) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}
