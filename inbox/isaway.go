//go:build !plant_outage_spends_attempts

package inbox

import (
	"errors"

	"github.com/semel-go/semel/breaker"
)

// isAway reports that what a breaker protects is away, or that it let the call not
// through whose error is err (nil: of none): its retries may be spent.
func isAway(b *breaker.Breaker, err error) bool {
	return b.State() != breaker.Closed || errors.As(err, new(*breaker.OpenError))
}
