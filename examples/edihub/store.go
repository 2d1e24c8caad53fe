package main

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// guarded is a store behind a breaker. With that as a gate of its inbox, a consumer
// waits while the store is away: no message spends an attempt, none is dead.
type guarded struct {
	outbox.ArchiveStore
	breaker *breaker.Breaker
}

func guard(name string, store outbox.ArchiveStore) guarded {
	return guarded{store, breaker.New(name, breaker.Config{
		OpenFor:   500 * time.Millisecond, // sooner than by default, as all is in an example
		IsFailure: func(err error) bool { return !isAnswer(err) },
	})}
}

// isAnswer reports that a store has done its part: what it says will be the same the
// next time.
func isAnswer(err error) bool {
	return errors.Is(err, outbox.ErrNotArchived) || errors.Is(err, outbox.ErrArchiveConflict) || errors.Is(err, outbox.ErrBadObjectName)
}

func (g guarded) Create(ctx context.Context, name string, data []byte, retainUntil time.Time) error {
	return final(g.breaker.Do(ctx, func(ctx context.Context) error {
		return g.ArchiveStore.Create(ctx, name, data, retainUntil)
	}))
}

func (g guarded) Read(ctx context.Context, name string) (data []byte, err error) {
	err = g.breaker.Do(ctx, func(ctx context.Context) error {
		data, err = g.ArchiveStore.Read(ctx, name)
		return err
	})
	return data, final(err)
}

// final marks what no attempt can mend.
func final(err error) error {
	if isAnswer(err) {
		return handler.Permanent(err)
	}
	return err
}
