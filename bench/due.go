package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// workArgument is what the process is told that works an inbox.
const workArgument = "work"

// dueEvery is how far apart messages come due while others wait.
const dueEvery = 10 * time.Millisecond

// delayed is an inbox in which b.waiting messages wait for an attempt in an hour,
// and others come due one after the other.
func (b *bench) delayed(ctx context.Context) (*database, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return nil, err
	}
	in, err := db.inbox(db.pool, "bench", work, nil) // registers the consumer
	if err == nil {
		_, err = in.Process(ctx, newMessage())
	}
	if err == nil {
		_, err = db.pool.Exec(ctx, `
			INSERT INTO inbox_messages (consumer_id, message_id, ready_at, attempts, first_failed_at, message_type, key, key_hash, place, payload)
			SELECT $1, gen_random_uuid(), now() + interval '1 hour' + n * interval '1 millisecond', 3, now(), 'payment.booked', n::text::bytea, n, 1, convert_to(repeat('x', $3), 'UTF8')
			FROM generate_series(1, $2) AS n`, dedup.ConsumerID("bench"), b.waiting, payloadBytes)
	}
	if err == nil {
		err = db.exec(ctx, `VACUUM ANALYZE inbox_messages`)
	}
	if err != nil {
		db.drop()
		return nil, fmt.Errorf("let messages wait: %w", err)
	}
	return db, nil
}

// comeDue adds messages that come due from now on for d. Each says when.
func (db *database) comeDue(ctx context.Context, d time.Duration) error {
	_, err := db.pool.Exec(ctx, `
		INSERT INTO inbox_messages (consumer_id, message_id, ready_at, occurred_at, message_text, message_type, key, key_hash, place, payload)
		SELECT $1, id, due, due, id::text, 'payment.booked', (n % 10000 + 1)::text::bytea, n, 1, convert_to(repeat('x', $3), 'UTF8')
		FROM (SELECT n, gen_random_uuid() AS id, clock_timestamp() + interval '1 second' + n * interval '10 milliseconds' AS due FROM generate_series(1, $2) AS n) AS m`,
		dedup.ConsumerID("bench"), int(d/dueEvery), payloadBytes)
	if err != nil {
		return fmt.Errorf("let messages come due: %w", err)
	}
	return nil
}

// inboxMemory measures a process that works an inbox in which far more messages
// wait than it may hold.
func (b *bench) inboxMemory(ctx context.Context) (result, error) {
	db, err := b.delayed(ctx)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	if err := db.comeDue(ctx, memoryRounds*b.round); err != nil {
		return result{}, err
	}
	peak, handled, err := b.watchChild(ctx, workArgument, schemaVariable+"="+db.schema)
	if err != nil {
		return result{}, err
	}
	if handled == 0 {
		return result{}, fmt.Errorf("none of the messages that came due was handled")
	}
	return result{
		value: peak, digits: 1,
		details: []string{
			fmt.Sprintf("VmHWM of a process that handled %d messages as they came due, in %s, while %d waited for a delayed retry", handled, memoryRounds*b.round, b.waiting),
			fmt.Sprintf("%d bytes each, %d workers", payloadBytes, workers),
		},
	}, nil
}

// workAsChild works an inbox.
func workAsChild(ctx context.Context, stdout io.Writer) error {
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
	return asChild(ctx, stdout, func(ctx context.Context) (int64, error) {
		err := in.Work(ctx)
		return in.Stats().Processed, err
	})
}

// dueLatency measures how late messages start that come due, while many wait.
func (b *bench) dueLatency(ctx context.Context) (result, error) {
	db, err := b.delayed(ctx)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	var (
		mu   sync.Mutex
		late []time.Duration
	)
	in, err := inbox.New(db.pool, "bench", func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		waited := time.Since(msg.OccurredAt)
		mu.Lock()
		late = append(late, waited)
		mu.Unlock()
		return work(ctx, tx, msg)
	}, inbox.Config{Schema: db.schema, Logger: silent()})
	if err != nil {
		return result{}, err
	}
	d := time.Duration(b.rounds) * b.round
	if err := db.comeDue(ctx, d); err != nil {
		return result{}, err
	}
	working, stop := context.WithTimeout(ctx, d+3*time.Second)
	defer stop()
	if err := in.Work(working); err != nil {
		return result{}, err
	}
	if want := int(d / dueEvery); len(late) < want {
		return result{}, fmt.Errorf("%d of %d messages were handled that came due", len(late), want)
	}
	slices.Sort(late)
	at := func(q float64) time.Duration { return late[int(q*float64(len(late)-1))] }
	return result{
		value: float64(at(0.99)) / float64(time.Millisecond), digits: 1,
		details: []string{
			fmt.Sprintf("p50 %s, max %s, of %d that came due one every %s, while %d waited", at(0.5).Round(time.Millisecond), at(1).Round(time.Millisecond), len(late), dueEvery, b.waiting),
		},
	}, nil
}
