//go:build plant_delete_before_verify

package outbox

import "context"

// settle believes that what it is about to write is as good as written.
func (a *archiving) settle(ctx context.Context, b *archiveBatch, c *archiveCopy) (deleted int64, err error) {
	all := map[[16]byte][32]byte{}
	for _, r := range c.rows {
		all[r.id] = r.hash
	}
	if deleted, err = a.clear(ctx, c, all); err != nil {
		return deleted, err
	}
	if _, err := a.secure(ctx, b, c); err != nil {
		return deleted, err
	}
	return deleted, a.noteDone(ctx, b)
}
