//go:build plant_new_key_per_attempt

package calls

import "strconv"

// keyAgain is the planted bug "new-key-per-attempt": the provider takes each attempt
// for a call of its own.
func keyAgain(c Call) string { return c.Key + "-" + strconv.Itoa(c.Attempt) }
