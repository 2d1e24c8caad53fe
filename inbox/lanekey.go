//go:build !plant_no_lanes

package inbox

import "github.com/semel-go/semel/handler"

// laneKey is in which lane a message waits: its ordering key. Empty: in none.
func laneKey(msg *handler.Message) string { return string(msg.Key) }
