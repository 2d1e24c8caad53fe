//go:build plant_ack_high_water

package kafka

import "slices"

// pass is the planted bug "ack-high-water": everything up to the highest
// settled record is left behind, whatever is in flight below it.
func (t *tracker) pass() {
	for slices.ContainsFunc(t.entries, func(e *entry) bool { return e.settled }) {
		t.passFirst()
	}
}
