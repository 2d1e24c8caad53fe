//go:build !plant_mark_before_confirm

package outbox

import (
	"context"

	"github.com/semel-go/semel/handler"
)

// ask makes an attempt to publish and waits for the answers: nothing is noted
// as published before the broker has confirmed it.
func (r *relayRun) ask(ctx context.Context, msgs []*handler.Message) []error {
	return r.publisher.Publish(ctx, msgs)
}
