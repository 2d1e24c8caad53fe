// Command soak runs a consumer for a long time under load and disturbances,
// and fails if a message was lost, doubled or reordered, or if the process
// grew.
//
//	make soak
//	make soak SOAK_FOR=3m
//	go run ./internal/soak -for 10s -rate 100 -plant leak
//	go run ./internal/soak -for 1m -disturb freeze,cut
//	go run -tags plant_no_claim ./internal/soak -for 10s -rate 100
//
// The consumer is a child process, so that memory, threads and descriptors are
// its own: one Run on Kafka and one on RabbitMQ, each with its own schema,
// consumer and topic or queue. The parent produces, disturbs, and samples the
// child.
//
// # What is sent
//
// Each message is a function of its number, so nothing has to be remembered:
// one in ten is sent again, at once, soon after, or up to 20,000 messages
// later; neighbours may be sent in the wrong order; a third belongs to four
// hot keys; some fail once before they succeed, some are slow, and one in
// 5,000 is poison (in a short run more, to have some).
//
// # What is counted
//
// An effect is a row without a unique key on the message. Lost: sent, no
// poison, and without an effect; or poison that is not in the dead letters.
// Doubled: effects beyond one each, effects of poison among them. Reordered:
// an effect behind that of a message of its key that was sent later.
//
// # What flat means
//
// The median of the last tenth of the samples is compared with that of the
// second tenth; the first tenth is for warming up. Growth of at most 10 %, or
// below the floor of the resource (see [resources]), is flat.
//
// The last lines are for machines: SOAK for each broker and in all, and for
// each resource. The status is 0 if all is well, 1 if not, 2 for bad usage.
package main
