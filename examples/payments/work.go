package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/schema"
	"github.com/semel-go/semel/transports/kafka"
)

const (
	// Messages come in small groups. The first ones come at the pace of a busy
	// endpoint, so that there is something to see; the rest of a large input as
	// fast as Kafka takes it.
	groupSize  = 64
	groupBytes = 4 << 20
	groupPause = 50 * time.Millisecond
	paced      = 8000

	maxKills  = 3
	firstKill = 300 * time.Millisecond
	killEvery = time.Second

	// stopPatience is for consumers that are told to stop. All they had is
	// acknowledged by then, or nobody wants it any more.
	stopPatience = 2 * time.Second
)

// work publishes the input while the consumers handle it and are killed, and
// returns when all is acknowledged.
func (r *run) work(ctx context.Context) (err error) {
	crew, err := startConsumers(consumerConfig{
		DatabaseURL: r.server.URL, Schema: r.name, Brokers: r.kafka.Brokers, Topic: r.name, Group: r.name,
		AnyType: r.options.input != "",
	}, r.verbose, r.pool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crew.Stop(stopPatience)) }()

	var published atomic.Int64
	var complete atomic.Bool // all of the input is published
	g, ctx := errgroup.WithContext(ctx)
	working, workIsOver := context.WithCancel(ctx)
	defer workIsOver()
	g.Go(func() error {
		defer complete.Store(true)
		return r.publish(ctx, &published)
	})
	g.Go(func() error { return r.killNowAndThen(working, crew) })
	g.Go(func() error {
		select {
		case err := <-crew.Failed():
			return err
		case <-working.Done():
			return nil
		}
	})
	g.Go(func() error {
		defer workIsOver()
		return r.watch(ctx, &published, &complete)
	})
	return g.Wait()
}

// publish sends the input to the topic, group by group, each confirmed by the
// broker before the next.
func (r *run) publish(ctx context.Context, published *atomic.Int64) error {
	publisher := kafka.NewPublisher(r.kafka.Client).To(r.name)
	var group []*handler.Message
	bytes := 0
	for {
		msg, err := r.input.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if msg != nil {
			group = append(group, msg)
			bytes += len(msg.Payload)
		}
		if msg != nil && len(group) < groupSize && bytes < groupBytes {
			continue
		}
		if err := errors.Join(publisher.Publish(ctx, group)...); err != nil {
			return err
		}
		sent := published.Add(int64(len(group)))
		if msg == nil {
			return nil
		}
		group, bytes = nil, 0
		if sent > paced {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(groupPause):
		}
	}
}

// killNowAndThen kills one consumer after the other while there is work.
func (r *run) killNowAndThen(ctx context.Context, crew *consumers) error {
	for pause := firstKill; r.kills < maxKills; pause = killEvery {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		name := members[r.kills%len(members)]
		inFlight, err := crew.kill(ctx, name)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		r.kills++
		r.torn += inFlight
		r.say("%s killed with SIGKILL, %d messages in flight; another process takes its place", name, inFlight)
	}
	return nil
}

// watch prints how far the work is, and returns when every message that was
// published is acknowledged.
func (r *run) watch(ctx context.Context, published *atomic.Int64, complete *atomic.Bool) error {
	const look, line = 100 * time.Millisecond, time.Second
	progress := schema.Qualify(`
		SELECT (SELECT count(*) FROM semel.processed_messages WHERE outcome = 1),
		       (SELECT count(*) FROM semel.dead_letters)`, r.name)
	var printed time.Time
	for {
		all := complete.Load() // before the counts, so that they include all
		sent := published.Load()
		acknowledged, err := r.kafka.Committed(ctx, r.name, r.name)
		if err != nil {
			return err
		}
		done := all && acknowledged == sent
		if done || time.Since(printed) >= line {
			var handled, dead int64
			if err := r.pool.QueryRow(ctx, progress).Scan(&handled, &dead); err != nil {
				return fmt.Errorf("look how far the work is: %w", err)
			}
			r.say("%7d published %7d acknowledged %7d handled %5d dead", sent, acknowledged, handled, dead)
			printed = time.Now()
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
}
