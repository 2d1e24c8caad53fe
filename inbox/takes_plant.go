//go:build plant_not_lowest_seq

package inbox

import (
	_ "embed"
	"strings"
)

//go:embed queries/take.sql
var takeSQL string

// takes is the planted bug "not-lowest-seq": what waits behind others of its key
// is taken too, as if it were the first, so that the look behind its claim finds
// nothing before it.
func takes() string {
	return strings.NewReplacer(
		"i.ready_at <= now()", "(i.ready_at <= now() OR i.ready_at IS NULL AND i.parked_at IS NULL)",
		"t.seq, t.message_id", "0::bigint, t.message_id",
	).Replace(takeSQL)
}
