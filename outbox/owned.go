//go:build !plant_two_owners

package outbox

import _ "embed"

// acquireSQL takes leases that nobody owns: the others' stay theirs until they
// run out.
//
//go:embed queries/acquire.sql
var acquireSQL string
