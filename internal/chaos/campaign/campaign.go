package campaign

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/services"
)

const cleanupTime = 30 * time.Second

// Run runs all groups of a campaign. An error means that there was none; what
// went wrong in a group is part of the summary.
func Run(ctx context.Context, config Config) (Summary, error) {
	config = config.withDefaults()
	if err := named(config.Brokers); err != nil {
		return Summary{}, err
	}
	dir, err := os.MkdirTemp("", "semel-chaos-")
	if err != nil {
		return Summary{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if config.Brokers, err = config.leaveOut(ctx); err != nil {
		return Summary{}, err
	}
	binaries, err := config.buildAll(ctx, dir)
	if err != nil {
		return Summary{}, err
	}
	pool, err := pgxpool.New(ctx, os.Getenv(services.PostgresVariable))
	if err != nil {
		return Summary{}, fmt.Errorf("connect to what %s names: %w", services.PostgresVariable, err)
	}
	defer pool.Close()

	c := &campaign{config: config, dir: dir, binaries: binaries, pool: pool, id: strings.ToLower(rand.Text()[:6])}
	specs := config.plan()
	results := make([]Result, len(specs))
	slots := make(chan struct{}, config.Parallel)
	var groups sync.WaitGroup
	for i, s := range specs {
		slots <- struct{}{}
		groups.Go(func() {
			defer func() { <-slots }()
			switch s.broker {
			case wire.Calls:
				results[i] = c.clients(ctx, s)
			case wire.Archive:
				results[i] = c.archivers(ctx, s)
			default:
				results[i] = c.group(ctx, s)
			}
		})
	}
	groups.Wait()
	return Summary{results}, ctx.Err()
}

// named says which services are missing in the environment, all at once.
func named(brokers []wire.Broker) error {
	variables := map[wire.Broker]string{wire.Kafka: services.KafkaVariable, wire.RabbitMQ: services.RabbitMQVariable}
	var errs []error
	for _, variable := range []string{services.PostgresVariable, variables[wire.Kafka], variables[wire.RabbitMQ]} {
		needed := variable == services.PostgresVariable ||
			slices.ContainsFunc(brokers, func(b wire.Broker) bool { return variables[b] == variable })
		if needed && os.Getenv(variable) == "" {
			errs = append(errs, fmt.Errorf("%s is not set: use 'make chaos', which starts the services", variable))
		}
	}
	return errors.Join(errs...)
}

// campaign is one run of [Run].
type campaign struct {
	config   Config
	dir      string
	binaries map[string]string // of the children's programs
	pool     *pgxpool.Pool
	id       string // in all names, so that campaigns do not meet

	mu sync.Mutex // guards config.Progress
}

// group runs one group from its empty schema to the count.
func (c *campaign) group(ctx context.Context, s spec) (result Result) {
	result.spec = s
	name := fmt.Sprintf("chaos_%s_%s_%s", c.id, s.broker, strings.ReplaceAll(string(s.point), "-", "_"))
	fail := func(err error) { result.Err = errors.Join(result.Err, err) }
	cleanup := func(do func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		fail(do(ctx))
	}

	defer cleanup(func(ctx context.Context) error { return dropStore(ctx, c.pool, name) })
	if err := createStore(ctx, c.pool, name); err != nil {
		fail(err)
		return result
	}
	queue, err := open(ctx, s, name)
	if err != nil {
		fail(err)
		return result
	}
	defer cleanup(queue.close)

	g := &group{
		spec: s, config: c.config, name: name, binary: c.binaries[consumerProgram], queue: queue,
		log:  func(format string, args ...any) { c.log(s, format, args...) },
		load: newLoad(name, s.ofInbox()), books: newBooks(), store: store{c.pool, name}, events: make(chan event, 1024),
	}
	fail(g.runWithPerson(ctx))
	cleanup(func(ctx context.Context) error {
		f, err := read(ctx, c.pool, name)
		result.Tally = count(g.load.all, f, s)
		return err
	})
	result.Kills, result.Redelivered = g.killed, g.books.redelivered
	for _, note := range result.Notes {
		c.log(s, "%s", note)
	}
	if result.Err != nil {
		c.log(s, "%v", result.Err)
	}
	return result
}

// log writes a line of progress.
func (c *campaign) log(s spec, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.config.Progress, "%-8s %-13s %s\n", s.broker, s.point, fmt.Sprintf(format, args...))
}
