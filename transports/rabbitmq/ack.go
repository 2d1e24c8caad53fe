//go:build !plant_multiple_ack

package rabbitmq

// together reports whether a settled tag may be acknowledged with all before
// it: not if an earlier one may still be at work. lowest is the first that is out.
func together(tag, lowest uint64) bool { return tag < lowest }
