package rabbitmq_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

// A queue can be deleted between two questions. Each has a value that the broker
// makes no queue with; a delivery limit is none to all versions.
func TestSource_LimitsAskedSafely(t *testing.T) {
	t.Parallel()

	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.redeclare(t, false, false, amqp.Table{"x-queue-type": kind, "x-max-length": 7})
			sent := &sentDeclares{}
			config := b.sourceConfig()
			config.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				sent.Conn = conn
				return sent, err
			}
			r := run(t, config, transporttest.SinkConfig{})
			r.await(t, rabbitmq.Consuming)
			r.stop(t)

			require.Greater(t, len(sent.frames), 3)
			for _, frame := range sent.frames {
				require.Regexp(t, `x-message-ttlS....semel asks|x-max-length-bytesS....semel asks|x-overflowS....semel asks|x-dead-letter-exchangeI`, frame)
			}
		})
	}
}

// A connection that is lost over a question is made anew, whatever the broker
// says: it is not the consumer that it refuses. 530 is its answer to one channel
// too many of a user.
func TestSource_LimitsLoseTheConnection(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		fault func(*line)
	}{
		{name: "ClosedByServer", fault: func(l *line) {
			l.each(func(w *wire) {
				go w.slipIn(10, 50, append([]byte{2, 18, 11}, "NOT_ALLOWED\x00\x00\x00\x00"...))
			})
		}},
		{name: "Cut", fault: func(l *line) { l.cut(false) }},
		{name: "Silent", fault: func(l *line) { l.each((*wire).blackHole) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			l, log := &line{}, &logbook{}
			config := b.sourceConfig()
			config.Logger, config.RequestTimeout = log.logger(), 5*time.Second
			first := func() { tt.fault(l) }
			config.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := l.dial(ctx, network, addr)
				sent := &sentDeclares{Conn: conn, instead: first}
				first = nil
				return sent, err
			}
			r := run(t, config, transporttest.SinkConfig{})
			r.await(t, rabbitmq.Consuming)

			require.ErrorContains(t, r.source.Stats().LastError, "look at the limits of the queue")
			require.Equal(t, uint64(1), r.source.Stats().Failures)
			require.Equal(t, 2, l.dialled())
			r.stop(t)
		})
	}
}

// sentDeclares keeps the frames that ask for a queue to be declared. They may
// be read once the source has ended.
type sentDeclares struct {
	net.Conn
	frames  []string
	instead func() // if set, called once in place of the first of them
}

func (s *sentDeclares) Write(b []byte) (int, error) {
	if len(b) > 11 && b[0] == 1 && bytes.Equal(b[7:11], []byte{0, 50, 0, 10}) {
		s.frames = append(s.frames, strings.Map(func(r rune) rune { // the lengths within, in one line
			if r < ' ' {
				return '.'
			}
			return r
		}, string(b)))
		if instead := s.instead; instead != nil {
			s.instead = nil
			instead()
			return len(b), nil
		}
	}
	return s.Conn.Write(b)
}

// Another broker may understand a question as a wish: it is not asked.
func TestSource_LimitsOfAnotherBroker(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.redeclare(t, false, false, amqp.Table{"x-message-ttl": 60_000})
	log := &logbook{}
	config := b.sourceConfig()
	config.Logger = log.logger()
	config.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return otherBroker{conn}, err
	}
	r := run(t, config, transporttest.SinkConfig{})
	r.await(t, rabbitmq.Consuming)

	require.Len(t, log.lines("it is not RabbitMQ"), 1)
	require.Empty(t, log.lines(dropsMessages))
	r.stop(t)
}

// otherBroker is a connection to a broker that has another name.
type otherBroker struct{ net.Conn }

func (o otherBroker) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	copy(b, bytes.ReplaceAll(b[:n], []byte("RabbitMQ"), []byte("Leporine")))
	return n, err
}
