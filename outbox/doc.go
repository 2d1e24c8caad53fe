// Package outbox writes events in the transaction that makes them true, and
// publishes them afterwards.
//
// A service that changes its database and must tell others cannot do both at
// once: whichever it does second may never happen. So the event is a row,
// written by [Write] beside the change; both commit or neither does. A [Relay]
// reads the rows and publishes them, as often as it takes, always under the
// same id, and per aggregate in the order in which they were written.
//
// That order is the order of a number drawn while the writer holds the
// aggregate. Writers of one aggregate must exclude each other before they
// write: by updating its row, by a version check, or with [Lock] where they
// only insert.
//
// Payloads stand in the table as they are written, unless the [Writer] has a codec
// ([Writer.WithCodec]). Then the relay needs it too ([RelayConfig.Codec]), and what
// reads the table by itself, Debezium for one, finds encoded payloads.
//
// Writers in other languages call the function outbox_write of the schema; what it
// takes is in docs/sql.md.
package outbox
