package main

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"sync"
)

// logbook is the log of the consumer. An hour of disturbances says the same
// things thousands of times: it writes each once and counts the rest.
type logbook struct {
	slog.Handler
	*seen
}

type seen struct {
	mu    sync.Mutex // guards times
	times map[string]int
}

func newLogbook(w io.Writer) logbook {
	return logbook{slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}), &seen{times: map[string]int{}}}
}

// Handle implements [slog.Handler].
func (l logbook) Handle(ctx context.Context, r slog.Record) error {
	l.mu.Lock()
	l.times[r.Message]++
	again := l.times[r.Message] > 1
	l.mu.Unlock()
	if again {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (l logbook) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logbook{l.Handler.WithAttrs(attrs), l.seen}
}

// WithGroup implements [slog.Handler].
func (l logbook) WithGroup(name string) slog.Handler {
	return logbook{l.Handler.WithGroup(name), l.seen}
}

func (l logbook) counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.times)
}
