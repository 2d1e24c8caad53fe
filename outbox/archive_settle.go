//go:build !plant_delete_before_verify

package outbox

import "context"

// settle has a batch in the archive, and read back, before it deletes its rows.
func (a *archiving) settle(ctx context.Context, b *archiveBatch, c *archiveCopy) (deleted int64, err error) {
	stored, err := a.secure(ctx, b, c)
	if err != nil || stored == nil {
		return 0, err
	}
	if deleted, err = a.clear(ctx, c, hashes(stored)); err != nil {
		return deleted, err
	}
	return deleted, a.noteDone(ctx, b)
}
