// Package inbox is Semel's engine: it handles messages that may come twice so
// that each takes effect once.
//
//	in, err := inbox.New(pool, "shipping", h, inbox.Config{})
//	...
//	err = in.Run(ctx, source)              // a whole source
//	outcome, err := in.Process(ctx, msg)   // or one message, in anybody's loop
//	outcome, err := in.Store(ctx, msg)     // or accept it now and handle it later:
//	err = in.Work(ctx)                     // here, or in any other process
//
// # Guarantees
//
// The handler's writes and the row that says the message was handled commit in
// one transaction. No message is acknowledged before its outcome is committed.
// A message that can never succeed ends in the dead letters with its reason.
// An outage, of the database or of something outside behind its breaker, spends no
// attempt and dead-letters nothing.
// Messages of one key are handled one after the other, in the order received;
// with ordering [Strict] also past one that failed or died. A message that kills
// its process is found by the third death, and is dead.
//
// # Not guaranteed
//
// That a handler runs once: it may run again after a rollback or a crash. A
// duplicate is recognised as long as the row of the first is kept
// ([Config.Retention]); what the source says is older than that is left to a
// person ([Config.TooOld]). With ordering [PerKey] a message that is stored or dead
// lets the next of its key go on, and order holds within one process.
//
// # Attempts
//
// A failed attempt is tried again in place, a few times, after a pause with
// full jitter that blocks only the message's key. Then the message is stored in
// the inbox, its source goes on, and [Inbox.Run] or [Inbox.Work] makes the next
// attempts from there, as [Config.Retry] says. After the last it goes to the dead
// letters, from where [Inbox.Replay] or [Store.Replay] handles it again.
// Serialization failures and deadlocks run again at no cost. An unknown COMMIT is
// resolved by running the message again: its claim then knows.
//
// # Dependencies
//
// What handlers and Prepare call outside should be called through a
// [breaker.Breaker]. While that is not closed, or refuses a call, the messages that
// met it wait and spend no attempt; one at a time, another one each time, tries
// whether it is back. Failures from before it opened are given back, since it had
// last closed. If [Config.Gates] names it, nothing else is started either, and the
// sources are paused.
//
// A message that fails while others succeed with the same dependency spends its
// attempts as ever. One that fails alone cannot be told from an outage: it waits, and
// is tried now and then. What waits in the inbox for a later attempt has its failures
// given back only in the process that put it off. A breaker is of one process: each
// finds out by itself.
//
// # The inbox
//
// A message of the inbox is handled by one worker at a time, which holds a lease
// on it. Until its outcome is committed its row stays, so it survives whatever
// becomes of the worker. In order ([Strict], [ViaInbox]) only the first of a key
// is ever taken; a dead one keeps its place, parked, and its key waits until a
// person replays or discards it. A replay keeps the place of the message.
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
// # Payloads at rest
//
// With [Config.Codec] no payload is stored as it came, neither in the inbox nor in
// dead letters nor in the events that tell of them. Handlers, Prepare and
// [Config.OnDeadLetter] see it as it came; ids, keys, headers and the texts of
// errors are stored as they are, and so is the fingerprint, a hash of the plain
// payload ([Config.Fingerprint] chooses another).
//
// What cannot be encoded is not stored: its message is not settled, as in an
// outage of the database, and no attempt is spent. What cannot be decoded waits:
// a message of the inbox is put off, with the error in its row; a dead letter is
// replayed by a process that has its key.
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
