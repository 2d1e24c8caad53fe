//go:build !plant_not_lowest_seq

package inbox

import _ "embed"

//go:embed queries/take.sql
var takeSQL string

// takes is the statement with which a worker takes messages: those that are
// ready. Of a key that keeps its order that is at most the lowest seq.
func takes() string { return takeSQL }
