//go:build plant_asked_while_running

package calls

import "time"

// underWay is the planted bug "asked-while-running": the provider is asked at once.
func underWay(time.Time, Call) bool { return false }
