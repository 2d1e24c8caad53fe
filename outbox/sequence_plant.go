//go:build plant_order_by_created_at

package outbox

import (
	_ "embed"
	"strings"
)

//go:embed queries/read.sql
var readBySeqSQL string

// readSQL believes in clocks.
var readSQL = strings.Replace(readBySeqSQL, "ORDER BY o.seq", "ORDER BY o.created_at", 1)
