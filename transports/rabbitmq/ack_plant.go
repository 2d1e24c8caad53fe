//go:build plant_multiple_ack

package rabbitmq

// ack is the planted bug "multiple-ack": all earlier tags are acknowledged too.
func ack(ch *channel, tag uint64) error { return ch.Ack(tag, true) }
