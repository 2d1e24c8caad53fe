package inbox_test

import "time"

// How long a test waits for a state, and how often it looks.
const (
	deadline = 20 * time.Second
	tick     = time.Millisecond
)
