// Package doctor looks at a database, and at the brokers beside it, for what would
// break the promise later: a topic that outlives what is remembered, a queue that
// drops messages, a commit that can be lost. It changes nothing.
//
// Each check is one file: what it asks is a small interface, what it concludes
// are [Finding]s. What cannot be looked at is a finding too, never silence.
package doctor
