// Package dlq keeps the dead letters: messages that are in front of a person
// because they could not take effect, as they came, with the reason.
//
//	id, _, err := store.Add(ctx, tx, &dlq.Letter{
//		ConsumerID: consumerID, MessageID: messageID,
//		Reason: dlq.Permanent, Attempts: 1, Errors: dlq.Chain(err),
//		Message: msg,
//	})
//
// # What is kept
//
// Payload, key and header values are kept byte for byte, a tombstone apart
// from an empty body, repeated headers and those without a value too. Names
// and ids are stored as text for people; what PostgreSQL's text cannot hold
// (NUL, invalid UTF-8) is escaped there, [Letter.Altered] says so, and
// [Store.Load] gives it back as it came. Times keep microseconds. Error texts
// are cut to [MaxErrorBytes].
//
// With [Store.WithCodec] the payload is stored as the codec encodes it, and all
// else as ever.
//
// # One row for one message
//
// A consumer has one dead letter for a message; when it dies again the same
// row is opened again. A second payload under the same id, a [Mismatch], has
// one of its own. Who may write a row is decided by the claim of the message
// (package dedup) in the same transaction; this package only stores.
//
// # For how long
//
// A letter stays until somebody purges: [Store.Purge] takes payload and header
// values off what was resolved or discarded long ago, and deletes it later. It
// touches none that is open unless it is told to.
package dlq
