//go:build !plant_settle_unhandled

package inbox

import "github.com/semel-go/semel/handler"

// tell ends a delivery: settled, or returned with why it is not.
func tell(d *handler.Delivery, err error) {
	if err != nil {
		d.Returned(err)
		return
	}
	d.Settled()
}
