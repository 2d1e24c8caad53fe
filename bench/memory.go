package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/transports/kafka"
)

// What the process whose memory is measured is told.
const (
	consumeArgument = "consume"
	schemaVariable  = "SEMEL_BENCH_SCHEMA"
	topicVariable   = "SEMEL_BENCH_TOPIC"
	groupVariable   = "SEMEL_BENCH_GROUP"
)

// memory measures a process that runs a source while far more messages wait
// than it may hold.
func (b *bench) memory(ctx context.Context) (result, error) {
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
	for left := b.waiting; left > 0; {
		n := min(left, 50_000)
		if err := t.publish(ctx, newMessages(n)); err != nil {
			return result{}, err
		}
		left -= n
	}
	peak, handled, err := b.watchChild(ctx, consumeArgument, schemaVariable+"="+db.schema, topicVariable+"="+t.name, groupVariable+"="+t.group())
	if err != nil {
		return result{}, err
	}
	if handled == 0 || handled >= b.waiting {
		return result{}, fmt.Errorf("%d of %d messages were handled: the topic must neither stand still nor run dry", handled, b.waiting)
	}
	return result{
		value: peak, digits: 1,
		details: []string{
			fmt.Sprintf("VmHWM of a process that handled %d of %d waiting messages in %s", handled, b.waiting, memoryRounds*b.round),
			fmt.Sprintf("%d bytes each, %d partitions, %d workers", payloadBytes, partitions, workers),
		},
	}, nil
}

// consumeAsChild runs a source.
func consumeAsChild(ctx context.Context, stdout io.Writer) error {
	db := &database{schema: os.Getenv(schemaVariable)}
	pool, err := newPool(ctx, db.schema, workers, nil)
	if err != nil {
		return err
	}
	defer pool.Close()
	in, err := db.inbox(pool, "bench", work, nil)
	if err != nil {
		return err
	}
	src := kafka.NewSource(
		kafka.SourceConfig{Group: os.Getenv(groupVariable), Topics: []string{os.Getenv(topicVariable)}, Logger: silent()},
		kgo.SeedBrokers(strings.Split(os.Getenv(brokersVariable), ",")...))
	return asChild(ctx, stdout, func(ctx context.Context) (int64, error) {
		err := in.Run(ctx, src)
		return in.Stats().Processed, err
	})
}
