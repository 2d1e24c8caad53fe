//go:build !plant_overtake_inbox

package inbox

import "math"

// turn is the seq before which no message of its key may be in the inbox when a
// message is handled: its own, and one that comes now is behind all.
func turn(t *task) int64 {
	if t.stored != nil {
		return t.stored.seq
	}
	return math.MaxInt64
}
