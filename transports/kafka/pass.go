//go:build !plant_ack_high_water

package kafka

// pass leaves settled records behind, up to the lowest one in flight.
func (t *tracker) pass() {
	for len(t.entries) > 0 && t.entries[0].settled {
		t.passFirst()
	}
}
