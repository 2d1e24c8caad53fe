//go:build !plant_multiple_ack

package rabbitmq

// ack acknowledges one tag, never multiple: an earlier one may still be at work.
func ack(ch *channel, tag uint64) error { return ch.Ack(tag, false) }
