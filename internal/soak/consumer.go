package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// connections of a pool. All are kept open, so that their number says something.
const connections = 6

// A process that is frozen for 15 seconds outlives all of these: its
// transactions are ended by the server, and the brokers give it up.
const (
	handlerTimeout = 10 * time.Second
	watchdogGrace  = 3 * time.Second
	sessionTimeout = 10 * time.Second
	heartbeat      = 5 * time.Second
)

// consumer is one subscriber on one broker.
type consumer struct {
	place place
	pool  *pgxpool.Pool
	wires *wires
	plant string

	inbox               *inbox.Inbox
	settled, duplicates int64 // of the inboxes before this one

	mu      sync.Mutex // guards tripped
	tripped map[int]bool
}

func newConsumer(p place, s setup) (*consumer, error) {
	config, err := pgxpool.ParseConfig(os.Getenv(services.PostgresVariable))
	if err != nil {
		return nil, fmt.Errorf("read %s: not a connection string", services.PostgresVariable) // err may quote a password
	}
	config.MaxConns, config.MinConns = connections, connections
	config.HealthCheckPeriod = 2 * time.Second
	config.ConnConfig.RuntimeParams["search_path"] = p.Name
	config.ConnConfig.RuntimeParams["application_name"] = p.Name + s.Application
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("make a pool for %s: %w", p.Broker, err)
	}
	return &consumer{place: p, pool: pool, wires: newWires(), plant: s.Plant}, nil
}

// renew makes a new inbox, as a restarted process would.
func (c *consumer) renew() (*inbox.Inbox, error) {
	c.settled, c.duplicates = c.counts()
	c.mu.Lock()
	c.tripped = map[int]bool{}
	c.mu.Unlock()
	in, err := inbox.New(c.pool, c.place.Name, handler.JSON(c.handle), inbox.Config{
		Schema: c.place.Name, HandlerTimeout: handlerTimeout, WatchdogGrace: watchdogGrace,
	})
	c.inbox = in
	return in, err
}

func (c *consumer) source() handler.Source {
	if c.place.Broker == onKafka {
		return kafka.NewSource(kafka.SourceConfig{Group: c.place.Name, Topics: []string{c.place.Name}},
			kgo.SeedBrokers(services.SplitBrokers(os.Getenv(services.KafkaVariable))...),
			kgo.Dialer(c.wires.dial), kgo.SessionTimeout(sessionTimeout))
	}
	return rabbitmq.NewSource(rabbitmq.SourceConfig{
		URL: os.Getenv(services.RabbitMQVariable), Queue: c.place.Name,
		Dial: c.wires.dial, AMQP: amqp.Config{Heartbeat: heartbeat},
	})
}

// counts are the messages settled since the start of the process.
func (c *consumer) counts() (settled, duplicates int64) {
	if c.inbox == nil {
		return 0, 0
	}
	s := c.inbox.Stats()
	return c.settled + s.Processed + s.Duplicates + s.Mismatches + s.Dead, c.duplicates + s.Duplicates
}

func (c *consumer) close() { c.pool.Close() }

var (
	errTripped = errors.New("this message fails once")
	errPoison  = errors.New("this message fails every time")
)

// handle writes an effect that can be counted, and is as slow and as clumsy as
// the message wants it to be.
func (c *consumer) handle(ctx context.Context, tx pgx.Tx, w work, msg *handler.Message) error {
	c.leak(w.N)
	if _, err := tx.Exec(ctx, `INSERT INTO effects (message, n) VALUES ($1, $2)`, msg.ID, w.N); err != nil {
		return err
	}
	if w.Sleep > 0 {
		if _, err := tx.Exec(ctx, `SELECT pg_sleep($1)`, float64(w.Sleep)/1000); err != nil {
			return err
		}
	}
	if w.Poison { // after its write: it must not stay
		return handler.Permanent(errPoison)
	}
	if w.Trip && c.trip(w.N) {
		return errTripped
	}
	return nil
}

// trip reports true the first time. The second time it forgets the message, so
// that an hour leaves nothing behind.
func (c *consumer) trip(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tripped[n] {
		delete(c.tripped, n)
		return false
	}
	c.tripped[n] = true
	return true
}
