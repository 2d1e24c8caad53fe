//go:build !plant_ack_before_commit

package inbox

import "context"

// settleThenTell takes a started delivery to its outcome and only then tells
// its source. This order is the promise.
func (r *run) settleThenTell(ctx context.Context, t *task) error {
	_, err := r.in.settle(ctx, t)
	r.finish(t, err)
	return err
}
