package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/handler"
)

// stopwatch collects how long things took. It is safe for concurrent use.
type stopwatch struct {
	mu    sync.Mutex
	times []time.Duration
}

func (w *stopwatch) add(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times = append(w.times, d)
}

// p99 is the time that one in a hundred took longer than, in milliseconds.
func (w *stopwatch) p99() (float64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.times) == 0 {
		return 0, errors.New("nothing was timed")
	}
	slices.Sort(w.times)
	rank := int(math.Ceil(0.99 * float64(len(w.times))))
	return float64(w.times[rank-1]) / float64(time.Millisecond), nil
}

// timing is handle, with w held to it.
func (w *stopwatch) timing(handle handleFunc) handleFunc {
	return func(ctx context.Context, msg *handler.Message) error {
		began := time.Now()
		if err := handle(ctx, msg); err != nil {
			return err
		}
		w.add(time.Since(began))
		return nil
	}
}

// p99Of lets n workers handle one message after the other for d, and returns
// how long the slowest in a hundred had to wait, in milliseconds.
func p99Of(ctx context.Context, n int, d time.Duration, handle handleFunc) (float64, error) {
	var w stopwatch
	if _, err := rate(ctx, n, d, fresh, w.timing(handle)); err != nil {
		return 0, err
	}
	return w.p99()
}
