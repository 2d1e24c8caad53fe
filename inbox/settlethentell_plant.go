//go:build plant_ack_before_commit

package inbox

import "context"

// settleThenTell is the planted bug "ack-before-commit": the source is told first.
func (r *run) settleThenTell(ctx context.Context, t *task) error {
	r.finish(t, nil)
	_, err := r.in.settle(ctx, t)
	return err
}
