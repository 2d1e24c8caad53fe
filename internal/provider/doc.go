// Package provider simulates a provider of e-invoices, or of payments, as
// services meet them: it works behind a time-out, resets connections, answers
// twice, is down for maintenance, and dies. It is an ordinary HTTP server, and
// meant to be a process of its own.
//
//	POST /invoices         makes another invoice with every call
//	POST /keyed/invoices   the same for an Idempotency-Key makes one
//	GET  /invoices?number= the invoices of this number, also /keyed
//	GET  /counts           calls and effects, see [Counts]
//	GET  /faults           what goes wrong, see [Faults]; PUT sets it
//
// What reached it and what it did stands in a file of its own, one JSON value a
// line (see [Entry]), written and synced before it answers. So the file, and not
// an answer, is what a proof counts; and the provider that starts again with it
// knows what the one before it has done.
//
// A client has to look whether an answer is one to its question: what a provider
// sends behind an answer, net/http can take for the answer to the next request on
// that connection.
//
// A client that sends "Prefer: processing" gets a 102 once its request is in the
// ledger, and so knows what no client knows otherwise: that it was heard.
package provider
