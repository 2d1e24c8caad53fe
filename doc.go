// Package semel is the front door of a library for services that receive
// messages that may come twice and must act on each of them once.
//
// Kafka, RabbitMQ and everything else that delivers messages reliably delivers
// some of them again: after a crash, a rebalance, a lost acknowledgement. Semel
// writes the record that a message was handled in the same PostgreSQL
// transaction as the message's effect, and acknowledges after that. So the
// effect happens once, or the message is in front of a person. Nothing in
// between.
//
// # Where to start
//
// This package holds no code. Each package below is a step down the house, and
// can be used without those above it:
//
//   - inbox: the engine. [github.com/semel-go/semel/inbox.Inbox.Run] handles a
//     whole source, [github.com/semel-go/semel/inbox.Inbox.Process] one message.
//   - transports/kafka, transports/rabbitmq, transports/memory: where messages
//     come from.
//   - transports/webhook: signed callbacks, into an inbox.
//   - dedup: only the primitive, for a transaction of your own; and what keeps
//     older versions from running.
//   - dedup/calls, breaker, breaker/httpbreaker: calls to the outside.
//   - dlq: the dead letters.
//   - handler: the message, the handler, and the contract of a source.
//   - schema: the tables. Command semel migrates them.
//
// The README has the first steps, docs/design.md how it works.
//
// # The words
//
// One word for each thing, in Go, SQL, logs and commands:
//
//   - message: one thing that happened; it has an id, a type, a key, a version,
//     a payload and headers
//   - consumer: the stable name of one logical subscriber, part of the identity
//     of what it handled
//   - handler: the function that gives a message its effect
//   - middleware: a function around a handler
//   - delivery: one arrival of a message
//   - source: where deliveries come from: Kafka, RabbitMQ, memory
//   - publisher: sends messages to a broker
//   - lane: where messages of one key wait for each other
//   - attempt: one run of the handler, in a transaction of its own
//   - outcome: how a message ended: processed, duplicate, mismatch, superseded,
//     skipped, stored, dead
//   - mismatch: an id that was seen before with another payload
//   - superseded: strictly older than one already handled of its entity; not run
//   - dead letter: a message in front of a person, with its reason
//   - poison: a message that fails every time
//   - replay: handling a dead letter again
//   - retention: how long it is remembered that a message was handled
//   - gate: holds the intake while a dependency is away
//   - call: a request to the outside, in the ledger; one step of a message
package semel
