//go:build !plant_order_by_created_at

package outbox

import _ "embed"

// readSQL reads events in the order of seq, which is drawn while their writer
// holds the aggregate. No clock is that exact.
//
//go:embed queries/read.sql
var readSQL string
