package main

import (
	"context"
	_ "embed"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/schema"
)

var (
	//go:embed queries/tables.sql
	tablesSQL string
	//go:embed queries/settled.sql
	settledSQL string
)

// stream is one broker's half of a soak.
type stream struct {
	place  place
	load   load
	broker broker
	pool   *pgxpool.Pool

	distinct atomic.Int64 // messages sent; the next one's number
	sent     atomic.Int64 // copies too
	resent   atomic.Int64 // because the broker had not confirmed them: their order is open
}

// newStream makes everything that a stream needs. remove takes it away again,
// also after an error.
func newStream(ctx context.Context, pool *pgxpool.Pool, p place, poisonIn int) (*stream, error) {
	s := &stream{place: p, load: load{p.Name, poisonIn}, pool: pool}
	if _, err := schema.Up(ctx, pool, p.Name, 0); err != nil {
		return s, err
	}
	if _, err := pool.Exec(ctx, schema.Qualify(tablesSQL, p.Name)); err != nil {
		return s, fmt.Errorf("create the table of the effects in schema %q: %w", p.Name, err)
	}
	var err error
	s.broker, err = open(ctx, p)
	return s, err
}

func (s *stream) remove(ctx context.Context) error {
	if s.broker != nil {
		if err := s.broker.remove(ctx); err != nil {
			return fmt.Errorf("delete %q at %s: %w", s.place.Name, s.place.Broker, err)
		}
	}
	if _, err := s.pool.Exec(ctx, `DROP SCHEMA IF EXISTS `+pgx.Identifier{s.place.Name}.Sanitize()+` CASCADE`); err != nil {
		return fmt.Errorf("drop schema %q: %w", s.place.Name, err)
	}
	return nil
}

// batches a second that a producer sends. When the broker is slow it falls
// behind and does not catch up: the rate is the most it sends.
const batches = 20

// produce sends rate messages a second until ctx ends.
func (s *stream) produce(ctx context.Context, rate int) error {
	tick := time.NewTicker(time.Second / batches)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		// Begun is finished: what was sent is to be known to the message.
		err := s.send(context.WithoutCancel(ctx), rate*(i%batches+1)/batches-rate*(i%batches)/batches)
		if err != nil {
			return err
		}
	}
}

// publishPatience is how long a broker that nobody disturbs may take.
const publishPatience = time.Minute

// send sends the next n messages, and the copies that are due with them.
func (s *stream) send(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, publishPatience)
	defer cancel()
	first := int(s.distinct.Load())
	var messages []*handler.Message
	for i := first; i < first+n; i++ {
		messages = append(messages, s.load.message(i))
		if of, ok := s.load.copied(i); ok {
			messages = append(messages, s.load.message(of))
		}
	}
	for left := messages; len(left) > 0; {
		var again []*handler.Message
		var last error
		for i, err := range s.broker.Publish(ctx, left) {
			if err != nil {
				again, last = append(again, left[i]), err
			}
		}
		if last != nil && (handler.IsPermanent(last) || ctx.Err() != nil) {
			return fmt.Errorf("send to %s: %w", s.place.Broker, last)
		}
		s.resent.Add(int64(len(again)))
		left = again
	}
	s.distinct.Add(int64(n))
	s.sent.Add(int64(len(messages)))
	return nil
}

// progress is how many messages have had their effect or are dead, and how many
// wait at the broker.
func (s *stream) progress(ctx context.Context) (settled, lag int64, err error) {
	if err := s.pool.QueryRow(ctx, schema.Qualify(settledSQL, s.place.Name)).Scan(&settled); err != nil {
		return 0, 0, fmt.Errorf("count what is settled of %s: %w", s.place.Broker, err)
	}
	lag, err = s.broker.lag(ctx)
	return settled, lag, err
}
