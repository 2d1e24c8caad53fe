package rabbitmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/handler"
)

// Bounds of AMQP 0.9.1 itself.
const (
	maxShortString = 255
	maxPrefetch    = 65_535
)

// DialFunc opens the network connection below an AMQP connection, as
// [net.Dialer.DialContext] does. Its context ends with the connect timeout.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// SourceConfig configures a [Source]. URL and Queue are required.
type SourceConfig struct {
	// URL is the broker: amqp://user:password@host:port/vhost, or amqps.
	// It never appears in a log line or an error.
	URL string

	// Queue is the queue to consume. If it was declared with a limit at which
	// the broker drops messages, and without a dead letter exchange, the source
	// warns of it when it starts; see the package comment.
	Queue string

	// Declare, if set, declares what the consumer needs (queue, exchange,
	// bindings) each time the source has a new channel. Without it the queue
	// must be there. It must not keep the channel.
	Declare func(ch *amqp.Channel) error

	// Prefetch is how many unacknowledged deliveries the broker may have out to
	// this source, and the bound of its memory: prefetch times the largest
	// message. From 1 to 65,535. Defaults to 200.
	Prefetch int

	// Exclusive asks to be the only consumer of a classic queue, and so keeps
	// the order of its messages; see the package comment. While another one has
	// the queue, the source waits for it to go, and asks again at least every
	// five seconds. A quorum queue lets several in: Run refuses it.
	Exclusive bool

	// SingleActiveConsumer says that the queue was declared with
	// x-single-active-consumer, and so keeps the order of its messages; see the
	// package comment. The source looks whether it was, where it may, and Run
	// refuses a queue that was not.
	SingleActiveConsumer bool

	// ConsumerTag names the consumer on the broker's pages, at most 255 bytes.
	// Defaults to "semel-" and a random part.
	ConsumerTag string

	// DrainTimeout is how long Run waits for its deliveries after its context
	// has ended. Negative: as long as it takes. Defaults to 40 s, longer than
	// the engine's own drain time and grace together: it is the last resort.
	DrainTimeout time.Duration

	// ConnectTimeout bounds dialling, TLS and the AMQP handshake together.
	// Defaults to 10 s.
	ConnectTimeout time.Duration

	// RequestTimeout is how long the broker may take to answer a request, and
	// a write to it may block, before the connection is given up.
	// Defaults to 10 s.
	RequestTimeout time.Duration

	// AMQP holds the client library's own options: TLS, SASL, frame size,
	// heartbeat (10 s unless given). Its Dial and Recovery must be nil: the
	// socket and the recovery are this package's job.
	AMQP amqp.Config

	// Dial replaces the plain TCP dialler, for a proxy or a choice of nodes.
	Dial DialFunc

	// Logger gets what an operator should see. Defaults to [slog.Default].
	Logger *slog.Logger
}

// withDefaults returns a checked copy of c with its defaults filled in.
func (c SourceConfig) withDefaults() (SourceConfig, error) {
	setDefault(&c.Prefetch, 200)
	setDefault(&c.DrainTimeout, 40*time.Second)
	setDefault(&c.ConnectTimeout, 10*time.Second)
	setDefault(&c.RequestTimeout, 10*time.Second)
	setDefault(&c.ConsumerTag, "semel-"+rand.Text())
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	var twoWays error
	if c.Exclusive && c.SingleActiveConsumer {
		twoWays = errors.New("give Exclusive or SingleActiveConsumer, not both: a queue with a single active consumer refuses exclusive ones")
	}
	return c, errors.Join(
		twoWays,
		checkLength("Queue", c.Queue),
		required("Queue", c.Queue),
		checkLength("ConsumerTag", c.ConsumerTag),
		checkRange("Prefetch", c.Prefetch, 1, maxPrefetch),
		c.link().validate(),
	)
}

// inOrder reports whether the broker is to send the queue to one consumer at a
// time. Then the source gives back in order too.
func (c SourceConfig) inOrder() bool { return c.Exclusive || c.SingleActiveConsumer }

func (c SourceConfig) link() link {
	return link{
		url: c.URL, config: c.AMQP, dial: c.Dial, name: "semel source " + c.Queue, log: c.Logger,
		connectTimeout: c.ConnectTimeout, requestTimeout: c.RequestTimeout,
	}
}

// PublisherConfig configures a [Publisher]. URL is required.
type PublisherConfig struct {
	// URL is the broker: amqp://user:password@host:port/vhost, or amqps.
	// It never appears in a log line or an error.
	URL string

	// Exchange is where messages are published. Empty is the broker's default
	// exchange, which routes by queue name.
	Exchange string

	// ExchangeOf, if set, names the exchange of each message instead:
	// outbox.AggregateType for one exchange for each aggregate type. It must be
	// safe for concurrent use and must not change the message.
	ExchangeOf func(*handler.Message) string

	// RoutingKey gives a message's routing key. Defaults to the message's type.
	// It must be safe for concurrent use and must not change the message.
	RoutingKey func(*handler.Message) string

	// Declare, if set, declares what the publisher needs each time it has a new
	// channel. Without it the exchanges must be there.
	Declare func(ch *amqp.Channel) error

	// Window is how many messages may be out without a confirm. More wait.
	// Defaults to 500.
	Window int

	// MaxPayload is the largest payload in bytes; a larger one fails
	// permanently instead of closing the channel under its neighbours. It must
	// not be above the broker's max_message_size. Defaults to 16 MB.
	MaxPayload int

	// ConnectTimeout bounds dialling, TLS and the AMQP handshake together.
	// Defaults to 10 s.
	ConnectTimeout time.Duration

	// RequestTimeout is how long the broker may take to answer a request or to
	// confirm anything at all, and a write to it may block, before the
	// connection is given up. It does not run while the broker blocks
	// publishers. Defaults to 10 s.
	RequestTimeout time.Duration

	// AMQP holds the client library's own options; see [SourceConfig.AMQP].
	AMQP amqp.Config

	// Dial replaces the plain TCP dialler, for a proxy or a choice of nodes.
	Dial DialFunc

	// Logger gets what an operator should see. Defaults to [slog.Default].
	Logger *slog.Logger
}

// withDefaults returns a checked copy of c with its defaults filled in.
func (c PublisherConfig) withDefaults() (PublisherConfig, error) {
	setDefault(&c.Window, 500)
	setDefault(&c.MaxPayload, 16<<20)
	setDefault(&c.ConnectTimeout, 10*time.Second)
	setDefault(&c.RequestTimeout, 10*time.Second)
	if c.RoutingKey == nil {
		c.RoutingKey = func(msg *handler.Message) string { return msg.Type }
	}
	var twoExchanges error
	if c.ExchangeOf == nil {
		exchange := c.Exchange
		c.ExchangeOf = func(*handler.Message) string { return exchange }
	} else if c.Exchange != "" {
		twoExchanges = errors.New("give Exchange or ExchangeOf, not both")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, errors.Join(
		twoExchanges,
		checkLength("Exchange", c.Exchange),
		checkRange("Window", c.Window, 1, maxPrefetch),
		checkRange("MaxPayload", c.MaxPayload, 1, 512<<20),
		c.link().validate(),
	)
}

func (c PublisherConfig) link() link {
	return link{
		url: c.URL, config: c.AMQP, dial: c.Dial, name: "semel publisher", log: c.Logger,
		connectTimeout: c.ConnectTimeout, requestTimeout: c.RequestTimeout,
	}
}

// validate checks what a source and a publisher share. It keeps quiet about
// what exactly is wrong with a URL, because that text would quote a password.
func (l link) validate() error {
	var badURL, badDial, badRecovery error
	if l.url == "" {
		badURL = required("URL", l.url)
	} else if _, err := amqp.ParseURI(l.url); err != nil {
		badURL = errors.New("URL is not an AMQP URL: want amqp://user:password@host:port/vhost, reserved characters percent-encoded")
	}
	if l.config.Dial != nil {
		badDial = errors.New("AMQP.Dial must be nil: use Dial")
	}
	if l.config.Recovery != nil {
		badRecovery = errors.New("AMQP.Recovery must be nil: this package reconnects itself")
	}
	return errors.Join(badURL, badDial, badRecovery,
		checkPositive("ConnectTimeout", l.connectTimeout), checkPositive("RequestTimeout", l.requestTimeout))
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func required(name, value string) error {
	if value == "" {
		return fmt.Errorf("%s is required", name)
	}
	return nil
}

func checkLength(name, value string) error {
	if len(value) > maxShortString {
		return fmt.Errorf("%s must have at most %d bytes, has %d", name, maxShortString, len(value))
	}
	return nil
}

func checkRange(name string, value, low, high int) error {
	if value < low || value > high {
		return fmt.Errorf("%s must be from %d to %d, is %d", name, low, high, value)
	}
	return nil
}

func checkPositive(name string, value time.Duration) error {
	if value < 0 {
		return fmt.Errorf("%s must be positive, is %s", name, value)
	}
	return nil
}
