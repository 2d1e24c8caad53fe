package outbox

import (
	"context"
	"time"

	"github.com/semel-go/semel/internal/purging"
)

// WithMaxCounted bounds what a status counts.
func (s Store) WithMaxCounted(n int) Store {
	q := *s.queries()
	q.maxCounted = n
	return Store{q: &q}
}

// PurgeEvery makes a relay purge, and look whether it is time, so often.
func PurgeEvery(r *Relay, every, look time.Duration) {
	r.purges = purging.Rhythm{Every: every, Look: look}
}

// Purges is the loop in which a relay purges, alone.
func Purges(ctx context.Context, r *Relay) { r.newRun(ctx).purge(ctx) }

// TakePurgeTurn asks whether a relay may purge.
func TakePurgeTurn(ctx context.Context, r *Relay, every time.Duration) (bool, error) {
	return r.takePurgeTurn(ctx, NewStore(r.cfg.Schema), every)
}

// DraftName is the name under which a folder's object is written.
func DraftName(name string, data []byte) string { return draftName(name, data) }
