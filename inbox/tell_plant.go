//go:build plant_settle_unhandled

package inbox

import "github.com/semel-go/semel/handler"

// tell is the planted bug "settle-unhandled": what a drain or an outage left
// undone is acknowledged too.
func tell(d *handler.Delivery, _ error) { d.Settled() }
