package inbox

import (
	"context"
	"time"

	"github.com/semel-go/semel/internal/purging"
)

// ConfigOf shows an inbox's configuration with its defaults.
func ConfigOf(in *Inbox) Config { return in.cfg }

// PurgeEvery makes an inbox purge, and look whether it is time, so often.
func PurgeEvery(in *Inbox, every, look time.Duration) {
	in.purges = purging.Rhythm{Every: every, Look: look}
}

// Purges is the loop in which an inbox purges, alone.
func Purges(ctx context.Context, in *Inbox) { in.purge(ctx) }
