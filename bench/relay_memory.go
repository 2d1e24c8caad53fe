package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/kafka"
)

const relayArgument = "relay"

// relayMemory measures a process that runs one relay to Kafka while far more
// events wait than it may hold.
func (b *bench) relayMemory(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	t, err := newTopic(ctx)
	if err != nil {
		return result{}, err
	}
	defer t.drop()
	if err := db.writeMany(ctx, b.pending, "NULL"); err != nil {
		return result{}, err
	}
	peak, sent, err := b.watchChild(ctx, relayArgument, schemaVariable+"="+db.schema, topicVariable+"="+t.name)
	if err != nil {
		return result{}, err
	}
	if sent == 0 || sent >= b.pending {
		return result{}, fmt.Errorf("%d of %d events were published: the outbox must neither stand still nor run dry", sent, b.pending)
	}
	return result{
		value: peak, digits: 1,
		details: []string{
			fmt.Sprintf("VmHWM of a process that published %d of %d pending events to Kafka in %s", sent, b.pending, memoryRounds*b.round),
			fmt.Sprintf("%d bytes each", payloadBytes),
		},
	}, nil
}

// writeMany fills the outbox with n events, published at the time that an
// expression gives.
func (db *database) writeMany(ctx context.Context, n int, publishedAt string) error {
	l, err := db.newBacklog(ctx, "backlog", min(n, 50_000), newMessage)
	if err != nil {
		return err
	}
	return db.exec(ctx, fmt.Sprintf(`
		INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload, published_at)
		SELECT gen_random_uuid(), '%s', l.aggregate_id, l.type, l.payload, %s
		FROM generate_series(1, %d) AS copy
		CROSS JOIN %s AS l
		LIMIT %d`, aggregateType, publishedAt, (n+l.n-1)/l.n, l.name, n),
		`ANALYZE outbox`)
}

// relayAsChild runs a relay.
func relayAsChild(ctx context.Context, stdout io.Writer) error {
	pool, err := newPool(ctx, os.Getenv(schemaVariable), 4, nil)
	if err != nil {
		return err
	}
	defer pool.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(os.Getenv(brokersVariable), ",")...), noLinger())
	if err != nil {
		return err
	}
	defer client.Close()
	r, err := outbox.NewRelay(pool, kafka.NewPublisher(client).To(os.Getenv(topicVariable)), outbox.RelayConfig{
		Schema: os.Getenv(schemaVariable), Logger: silent(),
	})
	if err != nil {
		return err
	}
	return asChild(ctx, stdout, func(ctx context.Context) (int64, error) {
		err := r.Run(ctx)
		return r.Stats().Kinds[aggregateType].Sent, err
	})
}
