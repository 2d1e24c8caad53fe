package outbox

import (
	"bytes"
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

// WithMaxObject bounds how many bytes of payloads go into one object of the archive.
func (s Store) WithMaxObject(n int64) Store {
	q := *s.queries()
	q.maxObject = n
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

// Sealed is the line of an object in JSON.
func Sealed(object []byte) []byte { return sealed(bytes.Clone(object)) }

// ReadLine reads a line of the archive.
func ReadLine(line []byte) error {
	_, err := readLine(line)
	return err
}
