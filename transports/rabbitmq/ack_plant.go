//go:build plant_multiple_ack

package rabbitmq

// together is the planted bug "multiple-ack": all earlier tags are acknowledged too.
func together(uint64, uint64) bool { return true }
