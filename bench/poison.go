package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/memory"
)

// poisonEvery is how many messages come for one that fails.
const poisonEvery = 100

// poisonType is the type of those.
const poisonType = "payment.poison"

// waitingAhead is how many messages wait in the queue.
const waitingAhead = 2000

var errPoison = errors.New("it fails every time")

// poison compares how fast the others of a source are handled while one message in
// a hundred fails permanently, with none that fails.
func (b *bench) poison(ctx context.Context) (result, error) {
	return b.poisoned(ctx, handler.Permanent(errPoison))
}

// poisonRetried is poison with messages that fail at each of their eight attempts.
func (b *bench) poisonRetried(ctx context.Context) (result, error) {
	return b.poisoned(ctx, errPoison)
}

// poisoned measures each side with a consumer of its own: what one puts off, the
// other does not make up for.
func (b *bench) poisoned(ctx context.Context, failure error) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	booked := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if msg.Type == poisonType {
			return failure
		}
		return work(ctx, tx, msg)
	}
	ill, err := db.inbox(db.pool, "ill", booked, nil)
	if err != nil {
		return result{}, err
	}
	healthy, err := db.inbox(db.pool, "healthy", booked, nil)
	if err != nil {
		return result{}, err
	}
	with := side{"one in a hundred fails", func(ctx context.Context) (float64, error) { return b.others(ctx, ill, poisonEvery) }}
	without := side{"none fails", func(ctx context.Context) (float64, error) { return b.others(ctx, healthy, 0) }}
	for _, s := range []side{without, with} {
		if _, err := s.measure(ctx); err != nil {
			return result{}, fmt.Errorf("warm up: %w", err)
		}
	}
	r, err := b.pairs(ctx, with, without)
	stats := ill.Stats()
	r.details = append(r.details, fmt.Sprintf("rates are those of the others; %d attempts failed, %d messages were stored for later ones, %d are dead", stats.FailedAttempts, stats.Stored, stats.Dead))
	return r, err
}

// others runs a source for a round, and returns at what rate messages took effect.
// Of every so many one is poison; 0: none.
func (b *bench) others(ctx context.Context, in *inbox.Inbox, every int) (float64, error) {
	ctx, stop := context.WithTimeout(ctx, b.round)
	defer stop()
	queue := memory.NewQueue("payments")
	ended := func() int64 {
		s := in.Stats()
		return s.Processed + s.Stored + s.Dead
	}
	before, began := in.Stats().Processed, time.Now()
	start := ended()
	feeding := make(chan struct{})
	go func() {
		defer close(feeding)
		for n := int64(1); ctx.Err() == nil; n++ {
			for n-(ended()-start) > waitingAhead && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			msg := newMessage()
			if every > 0 && n%int64(every) == 0 {
				msg.Type, msg.Key = poisonType, []byte(msg.ID)
			}
			queue.Publish(ctx, []*handler.Message{msg})
		}
	}()
	err := in.Run(ctx, memory.NewSource(queue))
	took := time.Since(began)
	<-feeding
	return float64(in.Stats().Processed-before) / took.Seconds(), err
}
