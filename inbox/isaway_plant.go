//go:build plant_outage_spends_attempts

package inbox

import "github.com/semel-go/semel/breaker"

// isAway is the planted bug "outage-spends-attempts": a breaker that is open is a
// failure of the message.
func isAway(*breaker.Breaker, error) bool { return false }
