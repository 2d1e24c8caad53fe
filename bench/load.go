package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/handler"
)

// handleFunc takes one message to its end.
type handleFunc func(context.Context, *handler.Message) error

// rate lets n workers handle one message after the other for d, and returns
// how many they handled per second. Each worker has its own source of messages.
func rate(ctx context.Context, n int, d time.Duration, next func(worker int) func() *handler.Message, handle handleFunc) (float64, error) {
	end := time.Now().Add(d)
	return rateWhile(ctx, n, func() bool { return time.Now().Before(end) }, next, handle)
}

// rateWhile is rate for as long as there is to be more.
func rateWhile(ctx context.Context, n int, more func() bool, next func(worker int) func() *handler.Message, handle handleFunc) (float64, error) {
	group, ctx := errgroup.WithContext(ctx)
	counts := make([]int, n)
	began := time.Now()
	for worker := range n {
		message := next(worker)
		group.Go(func() error {
			count := 0
			for more() {
				if err := handle(ctx, message()); err != nil {
					return err
				}
				count++
			}
			counts[worker] = count
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	total := 0
	for _, count := range counts {
		total += count
	}
	return float64(total) / time.Since(began).Seconds(), nil
}

// handleAll lets n workers handle all of msgs, and returns how many they
// handled per second.
func handleAll(ctx context.Context, n int, msgs []*handler.Message, handle handleFunc) (float64, error) {
	group, ctx := errgroup.WithContext(ctx)
	queue := make(chan *handler.Message, n) // room enough that no worker waits for the feeder
	began := time.Now()
	group.Go(func() error {
		defer close(queue)
		for _, msg := range msgs {
			select {
			case queue <- msg:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range n {
		group.Go(func() error {
			for msg := range queue {
				if err := handle(ctx, msg); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return float64(len(msgs)) / time.Since(began).Seconds(), nil
}

// expect turns the outcome of a message into an error unless it is want.
func expect(want handler.Outcome, process func(context.Context, *handler.Message) (handler.Outcome, error)) handleFunc {
	return func(ctx context.Context, msg *handler.Message) error {
		outcome, err := process(ctx, msg)
		if err == nil && outcome != want {
			err = fmt.Errorf("message %s is %s, want %s", msg.ID, outcome, want)
		}
		return err
	}
}
