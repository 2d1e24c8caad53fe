package inbox

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/dedup"
)

// failedCall is a failed attempt for which a dependency may be to blame: its breaker
// was closed then. When that opens, all failures since it had closed are given back:
// they are what opened it.
type failedCall struct {
	breaker *breaker.Breaker
	at      time.Time
}

// isPardoned reports that the breaker has opened since. It may be closed again.
func (f failedCall) isPardoned() bool {
	return isAway(f.breaker, nil) || f.breaker.ClosedAt().After(f.at)
}

// toBlame is the breaker for which a message waits that failed with cause: that of
// the cause, or of a failure before. Nil: the failure is the message's.
func (t *task) toBlame(cause error) *breaker.Breaker {
	if b := shutBy(cause); b != nil {
		return b
	}
	for _, f := range t.failedCalls {
		if isAway(f.breaker, nil) {
			return f.breaker
		}
	}
	return nil
}

// forgive takes the failures off that say nothing about the message any more.
func (in *Inbox) forgive(t *task) (any bool) {
	before := len(t.failedCalls)
	t.failedCalls = slices.DeleteFunc(t.failedCalls, failedCall.isPardoned)
	n := before - len(t.failedCalls)
	if n == 0 {
		return false
	}
	in.counters.failedAttempts.Add(-int64(n))
	if t.attempts = max(t.attempts-n, 0); t.attempts == 0 {
		t.failures = failures{}
	}
	return true
}

// pardon does so in the message's row too.
func (in *Inbox) pardon(ctx context.Context, t *task) {
	if !in.forgive(t) || t.stored == nil || t.attempts >= t.stored.attempts {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	if _, err := in.pool.Exec(ctx, in.rows.pardon, in.consumerID, t.stored.id, t.stored.owner, t.attempts); err != nil && ctx.Err() == nil {
		in.cfg.Logger.WarnContext(ctx, "attempts that a dependency failed could not be given back in the inbox; here they are", in.attrs(t,
			slog.Any("error", err))...)
	}
}

// maxFailedCalls is of how many messages that wait in the inbox it is remembered on
// what they failed.
const maxFailedCalls = 10_000

// failedBefore remembers on what messages failed that were put off, so that it can be
// given back when they come again. It is this process's memory: what another one
// takes, or what comes after a restart, keeps the attempts that it has.
type failedBefore struct {
	mu   sync.Mutex // guards what follows
	byID map[dedup.ID]putOff
}

// putOff is a message as it was put off.
type putOff struct {
	attempts int
	calls    []failedCall
}

// remember is called when a message was put off.
func (m *failedBefore) remember(t *task) {
	if len(t.failedCalls) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.byID) >= maxFailedCalls {
		for id := range m.byID { // any
			delete(m.byID, id)
			break
		}
	}
	m.byID[t.identity.id] = putOff{attempts: t.attempts, calls: t.failedCalls}
}

// recall returns on what a message failed before it was put off, as it was then.
func (m *failedBefore) recall(id dedup.ID, attempts int) []failedCall {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.byID[id]
	if !known {
		return nil
	}
	delete(m.byID, id)
	if before.attempts != attempts { // somebody else had it meanwhile
		return nil
	}
	return before.calls
}
