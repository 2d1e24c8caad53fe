package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
)

// record is what a consumer sees of an event.
type record struct {
	kind, aggregate string
	version         int64
	message         string
	place           int64
}

// kindOf is the aggregate of an event, by its type.
var kindOf = map[string]string{entryPostedType: accountKind, orderChangedType: orderKind}

// readTopic reads all n records of a topic.
func readTopic(ctx context.Context, brokers []string, topic string, n int64) ([]record, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, fmt.Errorf("read topic %q: %w", topic, err)
	}
	defer client.Close()
	records := make([]record, 0, n)
	for int64(len(records)) < n {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("read topic %q: %w", topic, context.Cause(ctx))
		}
		fetches.EachRecord(func(r *kgo.Record) { records = append(records, recordOf(r)) })
	}
	return records, nil
}

func recordOf(r *kgo.Record) record {
	read := record{aggregate: string(r.Key), place: r.Offset}
	for _, h := range r.Headers {
		switch h.Key {
		case handler.HeaderID:
			read.message = string(h.Value)
		case handler.HeaderType:
			read.kind = kindOf[string(h.Value)]
		case handler.HeaderVersion:
			read.version, _ = strconv.ParseInt(string(h.Value), 10, 64) // 0 is the version of nothing
		}
	}
	return read
}

// store puts what was read beside the other tables, to be counted with them.
func store(ctx context.Context, pool *pgxpool.Pool, records []record) error {
	_, err := pool.CopyFrom(ctx, pgx.Identifier{"topic_records"}, []string{"kind", "aggregate", "version", "message", "place"},
		pgx.CopyFromSlice(len(records), func(i int) ([]any, error) {
			r := records[i]
			return []any{r.kind, r.aggregate, r.version, r.message, r.place}, nil
		}))
	if err != nil {
		return fmt.Errorf("store what is on the topic: %w", err)
	}
	return nil
}
