package kafka

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// repeatAfter is how often a problem that goes on is logged.
const repeatAfter = 30 * time.Second

// report logs problems: each at once, and again every repeatAfter for as long
// as it lasts.
type report struct {
	logger *slog.Logger
	health *health

	mu     sync.Mutex // guards logged
	logged map[string]time.Time
}

func newReport(logger *slog.Logger, group string, h *health) *report {
	return &report{logger: logger.With(slog.String("group", group)), health: h, logged: map[string]time.Time{}}
}

// warn is for what we cope with.
func (r *report) warn(msg string, err error) { r.log(slog.LevelWarn, msg, err) }

// problem is for what someone must act on; todo says how.
func (r *report) problem(msg string, err error, todo string, attrs ...slog.Attr) {
	r.log(slog.LevelError, msg, err, append(attrs, slog.String("todo", todo))...)
}

// partition is for what cannot be undone. It is logged every time.
func (r *report) partition(p partition, msg string, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String("topic", p.topic), slog.Int("partition", int(p.id)))
	r.logger.LogAttrs(context.Background(), slog.LevelError, msg, attrs...) //nolint:sloglint // the callers' are constants
}

func (r *report) log(level slog.Level, msg string, err error, attrs ...slog.Attr) {
	r.health.failed(err)
	if r.due(msg + "\n" + err.Error()) {
		r.logger.LogAttrs(context.Background(), level, msg, append(attrs, slog.Any("error", err))...) //nolint:sloglint // the callers' are constants
	}
}

// due notes that a problem is logged now, unless it was a short while ago.
func (r *report) due(problem string) bool {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.logged[problem]; ok && now.Sub(last) < repeatAfter {
		return false
	}
	if len(r.logged) > 1000 { // texts that never repeat must not fill the memory
		clear(r.logged)
	}
	r.logged[problem] = now
	return true
}
