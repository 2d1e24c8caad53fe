//go:build !plant_no_lanes

package inbox

import (
	"hash/maphash"

	"github.com/semel-go/semel/handler"
)

var laneSeed = maphash.MakeSeed()

// laneKey is in which lane a message waits: a hash of its ordering key, which
// takes no memory. Two keys that share one wait for each other, no more. 0: in
// none.
func laneKey(msg *handler.Message) uint64 {
	if len(msg.Key) == 0 {
		return 0
	}
	return maphash.Bytes(laneSeed, msg.Key) | 1
}
