// Package inbox is Semel's engine: it handles messages that may come twice so
// that each takes effect once.
//
//	in, err := inbox.New(pool, "shipping", h, inbox.Config{})
//	...
//	err = in.Run(ctx, source)              // a whole source
//	outcome, err := in.Process(ctx, msg)   // or one message, in anybody's loop
//
// # Guarantees
//
// The handler's writes and the row that says the message was handled commit in
// one transaction. No message is acknowledged before its outcome is committed.
// A message that can never succeed ends in the dead letters with its reason.
// An outage of the database spends no attempt and dead-letters nothing.
// Messages of one key are handled one after the other, in the order received.
//
// # Not guaranteed
//
// That a handler runs once: it may run again after a rollback or a crash. A
// duplicate is recognised as long as the row of the first is kept
// ([Config.Retention]); what the source says is older than that is left to a
// person ([Config.TooOld]). A message that goes to the dead letters lets the next
// of its key go on. Order holds within one process; across processes it is the
// source's.
//
// # Attempts
//
// A failed attempt is tried again in place, a few times, after a pause with
// full jitter that blocks only the message's key. Then it goes to the dead
// letters, from where [Inbox.Replay] handles it again. Serialization failures
// and deadlocks run again at no cost. An unknown COMMIT is resolved by running
// the message again: its claim then knows.
//
// # Telling the broker of dead letters
//
// With [Config.DeadLetterRoute] every dead letter is an event in the outbox too,
// written in the same transaction: both are there or neither is. The event is
// the message as it came, payload, fields and headers, with headers that say how
// it died ([dlq.Letter.WriteHeaders]), and with these differences:
//
//   - Its id is its own, so that a message that dies twice is told of twice.
//     [dlq.HeaderOriginalID] has the message's. A message that named no
//     conversation began one, and its id is the correlation id.
//   - Its aggregate, and so its key at the broker, is the message's key. One that
//     is no text of at most 255 bytes becomes a hash; without a key it is the
//     message's id. [dlq.HeaderOriginalKey] then has the key, empty if there was
//     none. A message without a usable type has the type dead-letter, and
//     [dlq.HeaderOriginalType].
//   - A payload above [outbox.MaxPayload], a header whose name no event can have,
//     and what the database refuses are left out. [dlq.HeaderAltered] says so;
//     the dead letter has them.
//
// A replay that fails is told too, as the death that it is: with its reason, all
// attempts so far, and the first failure of the letter. One whose COMMIT got no
// answer may be told twice. A copy that is only counted is not told.
//
// Events of one key are told in the order in which their letters committed,
// across processes too.
//
// # Concurrency
//
// An [Inbox] is safe for concurrent use. At most [Config.Workers] handlers run
// at once, whatever the number of callers and sources.
//
// # Shutdown
//
// See [Inbox.Run].
package inbox
