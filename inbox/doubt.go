//go:build !plant_assume_committed

package inbox

// doubt says what a COMMIT without the server's answer means: the message runs
// again, its claim waits for the transaction in doubt, and then knows. A SELECT
// that finds nothing would prove nothing.
func doubt(t *task, err error) verdict {
	t.inDoubt = true
	return verdict{kind: away, err: err}
}
