// Package memory is a queue in memory, for tests, examples and small programs:
// the whole of Semel's contract between source and engine without a broker.
//
//	queue := memory.NewQueue("payments")
//	queue.Publish(ctx, []*handler.Message{{ID: "evt_1", Payload: body}})
//	err := in.Run(ctx, memory.NewSource(queue))
//
// # Guarantees
//
// Several sources on one queue compete for its messages; those that wait for
// one take turns. A message leaves the queue when it is settled. One that is
// returned, or that was out when its source was aborted, goes back to its place
// in the queue and comes again.
//
// A queue is not durable: it ends with its process, and what was not settled is
// lost with it. It has no limit either: a publisher that is faster than its
// consumers fills the memory.
//
// # Order
//
// Messages are handed out in the order they were published. As long as a
// message of a key is out, the other sources are handed none of that key, and
// when one is returned, no more of its key are handed out until all that are
// out have ended: what comes again comes in order. Among messages of different
// keys, or without a key, later ones may have been handed out meanwhile.
//
// # Concurrency
//
// All of it is safe for concurrent use. Messages are copied when they are
// published and again for every delivery, so nobody shares one.
package memory
