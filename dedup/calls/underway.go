//go:build !plant_asked_while_running

package calls

import "time"

// underWay reports whether the last attempt of a call may not have ended yet: an
// answer of the provider would be out of date as soon as it is given.
func underWay(now time.Time, c Call) bool { return now.Before(c.Deadline) }
