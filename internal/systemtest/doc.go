// Package systemtest proves the promise end to end: the engine on a real
// Kafka, a real RabbitMQ and a real PostgreSQL, through outages, kills, bad
// input and real payloads. It holds tests only.
//
// A sentence that is the same for both brokers is one test that runs on each,
// see eachBroker. The tests take turns, and only the two brokers of one test
// run side by side: they keep a small machine busy as it is.
package systemtest
