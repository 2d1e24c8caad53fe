package inbox

import (
	"context"
	"fmt"
	"sync"
)

// Work handles the messages of the inbox until ctx ends: what was stored, what
// waits for its next attempt, what waited behind its key, and what is replayed.
// It blocks, drains as [Inbox.Run] does, and may run in any number of processes.
//
// [Inbox.Run] does this too, beside its source. Work is for processes without one.
func (in *Inbox) Work(ctx context.Context) error {
	if err := in.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // told to end before it had begun: nothing was taken
		}
		return err
	}
	var purging sync.WaitGroup
	purging.Go(func() { in.purge(ctx) })
	defer purging.Wait()
	return in.work(ctx, in.observe)
}

// work works the inbox, one of all that do in this process at a time.
func (in *Inbox) work(ctx context.Context, draining func(context.Context, Event)) error {
	select {
	case in.working <- struct{}{}:
		defer func() { <-in.working }()
	case <-ctx.Done():
		return nil
	}
	if err := in.runSource(ctx, newWorker(in), draining); err != nil {
		return fmt.Errorf("work the inbox of consumer %q: %w", in.consumer, err)
	}
	return nil
}
