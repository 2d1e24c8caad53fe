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
// duplicate is recognised as long as the row of the first is kept. A message
// that goes to the dead letters lets the next of its key go on. Order holds
// within one process; across processes it is the source's.
//
// # Attempts
//
// A failed attempt is tried again in place, a few times, after a pause with
// full jitter that blocks only the message's key. Then it goes to the dead
// letters, from where [Inbox.Replay] handles it again. Serialization failures
// and deadlocks run again at no cost. An unknown COMMIT is resolved by running
// the message again: its claim then knows.
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
