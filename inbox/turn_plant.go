//go:build plant_overtake_inbox

package inbox

import "math"

// turn is the planted bug "overtake-inbox": what comes from a source does not see
// what waits of its key.
func turn(t *task) int64 {
	if t.stored != nil {
		return t.stored.seq
	}
	return math.MinInt64
}
