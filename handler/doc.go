// Package handler holds what every room of Semel agrees on: the message, the
// handler that works on it, and the contract between a source of messages and
// the engine that handles them.
//
// A handler is one function. The transaction is an argument, so writing
// outside it is the unusual thing to do:
//
//	h := handler.JSON(func(ctx context.Context, tx pgx.Tx, order Order, msg *handler.Message) error {
//		_, err := tx.Exec(ctx, `UPDATE orders SET status = 'PAID' WHERE id = $1`, order.ID)
//		return err
//	})
//
// # What a handler promises
//
// It writes through tx and through nothing else, it neither commits nor rolls
// back, and it is done with tx when it returns. It may run more than once for
// one message (after a rollback or a crash); its writes take effect once.
//
// # What its error means
//
// nil commits. [Permanent] sends the message to the dead letters at once.
// [RetryAfter] asks for a pause before the next attempt. Anything else is a
// failed attempt, tried again within the consumer's budget. Retries belong to
// the engine, never to a middleware.
//
// # Concurrency
//
// A [Func] is called from many goroutines at once. A [Message] is read only:
// the engine needs it as it came for the next attempt and for the dead letter.
// A middleware that changes something passes a changed copy on.
package handler
