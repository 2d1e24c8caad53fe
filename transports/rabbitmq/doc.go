// Package rabbitmq is a source and a publisher of messages for RabbitMQ
// (AMQP 0.9.1).
//
// A broker connection is a thing that breaks: the broker restarts, a firewall
// forgets, an operator deletes a queue. The client library ends a channel or a
// connection for ever when that happens, so this package owns the connection
// and makes a new one, with everything that belongs to it declared again.
//
//	src := rabbitmq.NewSource(rabbitmq.SourceConfig{
//		URL:   os.Getenv("AMQP_URL"),
//		Queue: "payments",
//	})
//	err := in.Run(ctx, src)
//
// # Guarantees
//
// A delivery is acknowledged after its outcome is committed, on the channel it
// came from, and within milliseconds. Those that are settled close together are
// acknowledged with one frame if everything before them is answered too; an
// unsettled neighbour is never acknowledged with them. What was not acknowledged comes again: the broker
// redelivers it when the channel or the connection ends.
//
// A publish succeeds when the broker confirmed it and did not return it. A
// message to an exchange that is missing fails alone: the publisher looks for an
// exchange before it publishes there, because the broker would end the channel
// under the messages of others.
//
// # What is not guaranteed
//
// Order between competing consumers of one queue, and after a redelivery, unless
// the queue is consumed in order (see below).
// Exactly one delivery: the engine recognises the copies by their id.
// A quorum queue with a delivery limit (20 by default from RabbitMQ 4.0)
// counts what is given back, before 4.3 also by a plain requeue, and drops the
// message at the limit: give such a queue a dead letter exchange, or no limit.
// The client library keeps headers in a map: of a name that a foreign client
// put into one table twice, the last value remains.
//
// # Order
//
// Messages come in the order of the queue, also past a pause, a drain, a lost
// connection and a death, if the broker gives the queue to one consumer at a
// time: a queue declared with x-single-active-consumer
// ([SourceConfig.SingleActiveConsumer]), or a classic queue with
// [SourceConfig.Exclusive]. [Source.KeepsOrder] is nil then. With a single active
// consumer the broker lets the next one take over at once; an exclusive one that
// waits has to ask again and again, each time a line in the broker's log.
//
// Such a source never gives a message back alone. It hands out no more, waits
// for what runs, and closes its channel, and with it consumer and messages go
// back in one step. A consumer that is cancelled first leaves its place to the
// next one while its messages are still out, and a quorum queue puts what is
// requeued behind what was requeued before. So a message that is returned holds
// up all the others until what is out has ended.
//
// Whether the queue is what the config says, the source looks when it begins to
// consume, with two or more lines about "semel asks" in the broker's log; for
// what it needs, see the next section. Where it cannot tell, it says that, at
// Info, and takes the config's word. Limits of order:
//
//   - A quorum queue keeps what was given back in a line of its own, and puts
//     what comes back again at its end. All that consume it must have the same
//     Prefetch, and nobody else may take from it, not even to look (the
//     management page's "Get messages"), or it may lose its order. The source
//     logs an error when it sees that.
//   - A quorum queue forgets acknowledgements that are still on their way inside
//     the broker when the channel is closed, if there are more than 32
//     (rabbitmq-server#10327). Such a message comes again, in its place.
//   - Who waits behind a single active consumer looks the same from here as who
//     has no messages: both are Consuming. One that waits for an exclusive
//     consumer is Waiting.
//
// # Queues that drop messages
//
// A queue with a TTL, a length limit or a delivery limit and without a dead
// letter exchange drops messages that no consumer ever sees, and so does a
// queue that goes with its last consumer or expires without one. A source looks
// at its queue once when it starts and warns in the log. AMQP has no request
// for that: it asks for the same queue with impossible arguments, which the
// broker refuses and explains. So it leaves two or more lines about
// "semel asks" in the broker's log, each the end of a channel of its own, never
// the consumer's. Limits of this look:
//
//   - It needs the right to configure the queue, and RabbitMQ 3.10 or later for
//     the delivery limit. Where it cannot tell, it says that, at Info.
//   - It sees what the queue was declared with, not what a policy sets: a limit
//     set by a policy is not seen, and a dead letter exchange set by one does
//     not silence the warning.
//   - A TTL that a producer sets on a message is not seen.
//
// # What ends Run, and what is waited out
//
// Until a source has consumed for the first time, an answer of the broker that
// says no to its configuration ends Run: credentials, virtual host or
// permission refused (403, 530), queue or exchange missing (404), declared
// differently (406), not possible at all (503, 540). The broker drops the
// socket of a wrong password without a word, so that one is believed when it
// happens twice in a row. After the source has consumed once, and for
// everything else (no route to the host, a timeout, a broker that shuts down,
// an exclusive consumer that is already there), it waits, with backoff and
// jitter, as long as its context lives, says so in the log and in
// [Source.Stats], and goes on when the broker lets it.
//
// # Concurrency
//
// All exported methods are safe for concurrent use. A source and a publisher
// have a connection each, never a shared one: a broker that is short of memory
// blocks connections that publish, and acknowledgements must still pass.
//
// # Shutdown
//
// When its context ends, a source cancels its consumer, gives back what it has
// not handed out, waits for the rest, closes channel and connection so that
// every acknowledgement has arrived, and returns nil. One that keeps order first
// waits, and then closes the channel, which does the rest.
package rabbitmq
