package inbox

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// othersDelay is how long, at most twice, a message is left to other processes.
const othersDelay = 5 * time.Second

// leftToOthers puts a message of the inbox off for whose type this process has no
// handler: another one that works the same consumer may have it, as in a rolling
// deploy. No attempt is spent. Nobody has it for as long as a message may fail:
// then a person must know.
func (in *Inbox) leftToOthers(ctx context.Context, t *task, cause error) bool {
	if t.stored == nil || !errors.Is(cause, handler.ErrUnknownType) || t.stored.age > in.cfg.Retry.MaxAge {
		return false
	}
	t.later = &postponement{delay: othersDelay + rand.N(othersDelay), errors: dlq.Chain(cause)}
	in.cfg.Logger.WarnContext(ctx, "no handler here for this message of the inbox: left to other processes", in.attrs(t, slog.Any("error", cause))...)
	return true
}
