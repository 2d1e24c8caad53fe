package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/examples/internal/as2"
	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/kafka"
)

// The consumers of the topic, also the names of their processes.
const (
	transforming = "transform"
	archiving    = "archive"
)

// The moments at which processes are killed.
const (
	storedMoment    = "stored"    // the interchange is in the claim-check store, and in no row
	answerMoment    = "answer"    // all is committed, and the MDN has not left
	confirmedMoment = "confirmed" // events are on the topic, and the outbox does not know
	redeemedMoment  = "redeemed"  // the transform's transaction is open
	copiedMoment    = "copied"    // the copy is in the archive, and in no row
)

const (
	workers = 4

	// A relay that is killed takes what it had in hand with it: how long until others
	// take that over. By default it is a minute.
	lease = 4 * time.Second

	// resends is for how long a partner may send a message again and get its MDN.
	resends = 90 * 24 * time.Hour
)

// partConfig is what each process is told.
type partConfig struct {
	example.Services
	Claims  string // the folder of the claim-check store
	Archive string // the folder of the archive
	Moment  string // when to wait to be killed; empty: never
	Nth     int64  // time
}

// moment is the moment of a name, if it is this process's.
func (c *partConfig) moment(name string) *moment {
	if c.Moment != name {
		return at(name, 0)
	}
	return at(name, c.Nth)
}

// claimsIn are the claims in this process's way to the store.
func (c *partConfig) claimsIn(store outbox.ArchiveStore) claims {
	return claims{store, fileURL(c.Claims)}
}

// serve is the hub. Any number of its processes share the work.
func serve(ctx context.Context, c partConfig) error {
	pool, err := c.Pool(ctx, 3*workers)
	if err != nil {
		return err
	}
	defer pool.Close()
	notifier := outbox.NewNotifier(pool, c.Schema)
	left := momentStore{outbox.DirectoryArchive(c.Claims), c.moment(storedMoment), nil}
	h := &hub{
		pool: pool, claims: c.claimsIn(left), logger: c.Logger(),
		responder: as2.Responder{ReportingUA: "edihub.example; Semel edihub", Domain: "edihub.example"},
	}
	j := journal{events: outbox.NewWriter(c.Schema).AfterCommit(notifier.Wake), responder: h.responder}
	h.inbox, err = inbox.New(pool, edihub, handler.JSON(j.take), inbox.Config{
		Schema: c.Schema, Workers: workers, Retention: resends, DrainTimeout: 2 * time.Second, Logger: c.Logger(),
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /as2", beforeAnswer(h, c.moment(answerMoment)))
	server, err := example.Listen(ctx, mux)
	if err != nil {
		return err
	}
	fmt.Println(server.URL + "/as2")

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.inbox.Work(ctx) }) // what failed at first is journaled later, and sent again meanwhile
	g.Go(func() error { return notifier.Run(ctx) })
	g.Go(func() error { return server.Run(ctx) })
	return g.Wait()
}

// relay publishes what is in the outbox.
func relay(ctx context.Context, c partConfig) error {
	pool, err := c.Pool(ctx, 5)
	if err != nil {
		return err
	}
	defer pool.Close()
	client, err := kgo.NewClient(append(kafka.WithinAttempt(lease/4), kgo.SeedBrokers(c.Brokers...))...)
	if err != nil {
		return err
	}
	defer client.Close()
	publisher := momentPublisher{kafka.NewPublisher(client).To(c.Topic), c.moment(confirmedMoment)}
	relay, err := outbox.NewRelay(pool, publisher, outbox.RelayConfig{
		Schema: c.Schema, Name: c.Name, AttemptTimeout: lease / 4, Lease: lease, Logger: c.Logger(),
	})
	if err != nil {
		return err
	}
	return relay.Run(ctx)
}

// transform is the consumer that makes canonical JSON.
func transform(ctx context.Context, c partConfig) error {
	left := guard("claim checks", momentStore{outbox.DirectoryArchive(c.Claims), nil, c.moment(redeemedMoment)})
	return consume(ctx, c, transformer{c.claimsIn(left)}.handle, inbox.Config{
		Gates: []*breaker.Breaker{left.breaker}, DeadLetterOwner: "edi-desk",
	})
}

// archiveCopies is the consumer that keeps a copy.
func archiveCopies(ctx context.Context, c partConfig) error {
	left := guard("claim checks", outbox.DirectoryArchive(c.Claims))
	copies := guard("archive", momentStore{outbox.DirectoryArchive(c.Archive), c.moment(copiedMoment), nil})
	a := archive{claims: c.claimsIn(left), store: copies}
	return consume(ctx, c, a.note, inbox.Config{
		Gates: []*breaker.Breaker{left.breaker, copies.breaker}, Prepare: a.copy, DeadLetterOwner: "edi-desk",
	})
}

// consume hands what is on the topic to the consumer that the process is named for.
func consume(ctx context.Context, c partConfig, h handler.Func, config inbox.Config) error {
	pool, err := c.Pool(ctx, workers+2)
	if err != nil {
		return err
	}
	defer pool.Close()
	config.Schema, config.DrainTimeout, config.Logger = c.Schema, 2*time.Second, c.Logger()
	in, err := inbox.New(pool, c.Name, handler.Mux(map[string]handler.Func{receivedEvent: h}, nil), config)
	if err != nil {
		return err
	}
	return in.Run(ctx, kafka.NewSource(
		kafka.SourceConfig{Group: c.Group(c.Name), Topics: []string{c.Topic}, DrainTimeout: time.Second, Logger: c.Logger()},
		kgo.SeedBrokers(c.Brokers...),
		// A process that takes a killed one's place under its name has its
		// partitions at once; without a name they wait for the session to end.
		kgo.InstanceID(c.Name),
		kgo.SessionTimeout(6*time.Second), // the least that brokers allow by default
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.FetchMaxWait(250*time.Millisecond),
	))
}
