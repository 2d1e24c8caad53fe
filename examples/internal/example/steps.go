package example

import (
	"context"
	"time"
)

// Step is one thing that goes wrong in a run.
type Step struct {
	After time.Duration // the step before
	Do    func() error
}

// InTurn takes one step after the other.
func InTurn(ctx context.Context, steps ...Step) error {
	for _, step := range steps {
		if err := Wait(ctx, step.After); err != nil {
			return err
		}
		if err := step.Do(); err != nil {
			return err
		}
	}
	return nil
}

// Wait waits for a time, or until ctx ends.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
