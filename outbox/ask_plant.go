//go:build plant_mark_before_confirm

package outbox

import (
	"context"

	"github.com/semel-go/semel/handler"
)

// ask takes what was handed over for published.
func (r *relayRun) ask(ctx context.Context, msgs []*handler.Message) []error {
	go r.publisher.Publish(context.WithoutCancel(ctx), msgs)
	return make([]error, len(msgs))
}
