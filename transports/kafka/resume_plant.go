//go:build plant_ack_high_water

package kafka

// resume is the planted bug "ack-high-water": the highest settled record plus
// one, whatever is in flight below it.
func (t *tracker) resume() int64 {
	for i := len(t.entries) - 1; i >= 0; i-- {
		if t.entries[i].settled {
			return t.entries[i].offset + 1
		}
	}
	if len(t.entries) > 0 {
		return t.entries[0].offset
	}
	return t.next
}
