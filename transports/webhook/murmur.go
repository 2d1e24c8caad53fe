package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/semel-go/semel/handler"
)

// pauseOfMurmur is how long a handler says nothing after a line about strangers:
// anybody can send bad signatures as fast as they like.
const pauseOfMurmur = time.Minute

// murmur lets one line through now and then, and counts what it keeps back.
type murmur struct {
	mu   sync.Mutex // guards the fields below
	next time.Time
	kept int
}

// may reports whether a line may be written, and how many were not since the last.
func (m *murmur) may(now time.Time) (kept int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Before(m.next) {
		m.kept++
		return 0, false
	}
	kept, m.kept, m.next = m.kept, 0, now.Add(pauseOfMurmur)
	return kept, true
}

// complain tells of a request that was refused for its signature.
func (h *Handler) complain(ctx context.Context, end ending) {
	if kept, ok := h.refused.may(time.Now()); ok {
		h.cfg.Logger.WarnContext(ctx, "webhook refused", slog.String("endpoint", h.cfg.Endpoint),
			slog.String("reason", answers[end].text), slog.Int("more_since_last", kept))
	}
}

// lament tells of a message that was not stored.
func (h *Handler) lament(ctx context.Context, id, kind string, err error) {
	if kept, ok := h.failed.may(time.Now()); ok {
		h.cfg.Logger.WarnContext(ctx, "webhook not stored: its provider was asked to send it again", slog.String("endpoint", h.cfg.Endpoint),
			slog.String("message_id", cut(id)), slog.String("message_type", cut(kind)),
			slog.Any("error", err), slog.Int("more_since_last", kept))
	}
}

// tell tells of a message that is settled.
func (h *Handler) tell(ctx context.Context, id, kind string, outcome handler.Outcome, took time.Duration) {
	if h.cfg.Logger.Enabled(ctx, slog.LevelDebug) {
		h.cfg.Logger.DebugContext(ctx, "webhook settled", slog.String("endpoint", h.cfg.Endpoint), slog.String("message_id", cut(id)),
			slog.String("message_type", cut(kind)), slog.String("outcome", outcome.String()), slog.Duration("took", took))
	}
}

// cut is text from outside as long as a line can bear.
func cut(text string) string { return text[:min(len(text), 255)] }
