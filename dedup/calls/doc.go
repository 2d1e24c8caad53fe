// Package calls makes calls to the outside take effect once: a payment, an invoice, a
// mail. They are in no transaction of ours, and a call that gets no answer may have
// been done or not. So each stands in a ledger: the intent before, the result after.
//
//	prepare := func(ctx context.Context, msg *handler.Message) error { // inbox.Config.Prepare
//		_, err := ledger.Do(ctx, msg, "create-invoice", func(ctx context.Context, key string) ([]byte, error) {
//			return provider.CreateInvoice(ctx, key, msg.Payload) // key: its Idempotency-Key
//		}, calls.Options{})
//		return err
//	}
//	handle := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
//		invoice, err := ledger.Result(ctx, tx, msg, "create-invoice")
//		...
//	}
//
// # What the answer of a call means
//
//   - nil: done. The result is stored; the call is never made again.
//   - an error marked by [handler.Permanent]: the provider has said no, and has done
//     nothing. It is made under a new key when the message is tried again. Say so only
//     of answers that mean it: a 409 or a 429 does not.
//   - an error with a method NotSent() bool that returns true, as that of an open
//     breaker: the provider has seen nothing.
//   - any other, a panic, and a crash: its end is unknown. A timeout is of this kind,
//     and our own shutdown.
//
// # How an unknown end is resolved
//
// With the message's next attempt, by the first of these that can be had: the stored
// result; the same call under the same key, while the provider remembers it
// ([Options.KeyTTL]); a question to the provider ([Options.WasItDone]), asked once
// the last attempt has ended for certain; a person, by [handler.ErrCallUnknown] and
// semel calls resolve.
//
// # What Do returns
//
// Besides the error of the call, with what it was marked: an error marked by
// [handler.InFlight] while somebody else has the call in hand (the message waits and
// spends no attempt), by [handler.Outage] where a statement of the ledger failed, and
// by [handler.Permanent] where a person has to look.
//
// # What it does not do
//
// It cannot make a provider remember: one that has no keys and cannot be asked is left
// to a person after every answer that is lost. A call that goes on after the end of
// its context and its grace ([Config.Grace]) may meet the next one. Calls are kept as
// long as their messages: a message that comes after its record was purged makes its
// calls again.
//
// # Concurrency and shutdown
//
// One process at a time has a call in hand, for a lease that is longer than the call;
// all times are the database's. What a process says after its lease counts only where
// it is true for everybody: that the call was done. A call that a shutdown cuts off is
// given back at once, and resolved by the next attempt.
package calls
