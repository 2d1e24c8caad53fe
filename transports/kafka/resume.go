//go:build !plant_ack_high_water

package kafka

// resume is the offset from which the partition must be read on: the lowest
// record in flight, or the highest plus one when none is.
func (t *tracker) resume() int64 {
	if len(t.entries) > 0 {
		return t.entries[0].offset
	}
	return t.next
}
