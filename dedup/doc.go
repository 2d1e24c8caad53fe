// Package dedup records which messages were handled, so that each takes effect
// once. It is the primitive under the rest of Semel and can be used alone:
//
//	tx, err := pool.Begin(ctx)
//	...
//	claimed, err := dedup.Claim(ctx, tx, "shipping", id)
//	if err != nil || !claimed {
//		return err // not claimed: a duplicate, its effect is committed
//	}
//	// the effect, through tx
//	return tx.Commit(ctx)
//
// # Why it works
//
// The record and the effect are in one transaction: both commit or neither
// does. The claim is one INSERT ... ON CONFLICT DO NOTHING, and its row count
// decides. A second copy waits for the first transaction and gets the message
// if that rolls back. There is no check before the act, and no lease.
//
// # Versions
//
// A message that was handled may still have been overtaken: it says what a newer
// one has changed since. [VersionGuard] is a middleware that has such a message
// end as superseded, where every message carries the whole state.
//
// # What it does not do
//
// A duplicate is recognised as long as its row is kept. A message claimed in
// one database is unknown in another. [Claim] compares no payloads; package
// inbox does.
//
// # Isolation
//
// Under READ COMMITTED a claim never fails because of another one. Under
// REPEATABLE READ and SERIALIZABLE a copy in flight makes it fail with
// SQLSTATE 40001: run the transaction again.
package dedup
