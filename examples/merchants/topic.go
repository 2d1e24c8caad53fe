package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
)

// topic reads all that is on the topic, beside the consumers, to count it.
type topic struct {
	client *kgo.Client

	mu      sync.Mutex // guards records
	records []topicRecord
}

type topicRecord struct{ message, merchant string }

func openTopic(brokers []string, name string) (*topic, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(name), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, fmt.Errorf("read topic %q: %w", name, err)
	}
	return &topic{client: client}, nil
}

// read reads until ctx ends.
func (t *topic) read(ctx context.Context) error {
	for ctx.Err() == nil {
		fetches := t.client.PollFetches(ctx)
		t.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			record := topicRecord{merchant: strings.TrimPrefix(string(r.Key), aggregateID(""))}
			for _, h := range r.Headers {
				if h.Key == handler.HeaderID {
					record.message = string(h.Value)
				}
			}
			t.records = append(t.records, record)
		})
		t.mu.Unlock()
	}
	return nil
}

// len is how many records were read.
func (t *topic) len() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.records))
}

// messages are the ids of all records read.
func (t *topic) messages() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]string, len(t.records))
	for i, r := range t.records {
		ids[i] = r.message
	}
	return ids
}

// store puts what was read beside the other tables, to be counted with them.
func (t *topic) store(ctx context.Context, pool *pgxpool.Pool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := pool.CopyFrom(ctx, pgx.Identifier{"topic_records"}, []string{"message", "merchant_id"},
		pgx.CopyFromSlice(len(t.records), func(i int) ([]any, error) {
			return []any{t.records[i].message, t.records[i].merchant}, nil
		}))
	if err != nil {
		return fmt.Errorf("store what is on the topic: %w", err)
	}
	return nil
}
