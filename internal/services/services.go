// Package services tells tests where the real PostgreSQL, Kafka and RabbitMQ
// are: at what DATABASE_URL, KAFKA_BROKERS and AMQP_URL name. "make
// services-up" starts them and writes the three into .services/env.
//
// A test whose service is not named is skipped on a laptop and fails where all
// services must be there: when CI or SEMEL_SERVICES=required is set.
package services

import (
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// The variables that name the services.
const (
	PostgresVariable = "DATABASE_URL"
	KafkaVariable    = "KAFKA_BROKERS"
	RabbitMQVariable = "AMQP_URL"
)

// Postgres returns the connection string of the test database.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return named(tb, PostgresVariable)
}

// Kafka returns the addresses of the test brokers, after one of them answered.
func Kafka(tb testing.TB) []string {
	tb.Helper()
	brokers := SplitBrokers(named(tb, KafkaVariable))
	requireAnswer(tb, KafkaVariable, brokers)
	return brokers
}

// RabbitMQ returns the URL of the test broker, after it answered.
func RabbitMQ(tb testing.TB) string {
	tb.Helper()
	value := named(tb, RabbitMQVariable)
	broker, err := url.Parse(value)
	if err != nil { // err holds the URL, and with it the password
		tb.Fatalf("read %s: not a URL; it looks like amqp://user:password@host:5672/", RabbitMQVariable)
	}
	port := broker.Port()
	if port == "" && broker.Scheme == "amqps" {
		port = "5671"
	} else if port == "" {
		port = "5672"
	}
	requireAnswer(tb, RabbitMQVariable, []string{net.JoinHostPort(broker.Hostname(), port)})
	return value
}

// SplitBrokers returns the addresses of a comma-separated list.
func SplitBrokers(list string) []string {
	var brokers []string
	for broker := range strings.SplitSeq(list, ",") {
		if broker = strings.TrimSpace(broker); broker != "" {
			brokers = append(brokers, broker)
		}
	}
	return brokers
}

func named(tb testing.TB, variable string) string {
	tb.Helper()
	value := os.Getenv(variable)
	if strings.TrimSpace(value) != "" {
		return value
	}
	Missing(tb, variable+" is not set: run 'make services-up', then 'set -a; . ./.services/env', or use 'make test'")
	return ""
}

// Missing ends a test that lacks something: it is skipped, or fails in a run
// that must skip nothing.
func Missing(tb testing.TB, what string) {
	tb.Helper()
	if required() {
		tb.Fatalf("this run must skip nothing, but %s", what)
	}
	tb.Skipf("SKIPPED, PROVES NOTHING: %s", what)
}

// required tells whether a missing service is a failure. CI systems set CI to
// anything; a person can switch it off with CI=false.
func required() bool {
	ci := os.Getenv("CI")
	return os.Getenv("SEMEL_SERVICES") == "required" || (ci != "" && ci != "false")
}

// requireAnswer fails the test unless one of the addresses takes a connection.
func requireAnswer(tb testing.TB, variable string, addrs []string) {
	tb.Helper()
	var last error
	for _, addr := range addrs {
		conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
		if err == nil {
			_ = conn.Close()
			return
		}
		last = err
	}
	tb.Fatalf("reach the service that %s names: nobody answers at %s (%v)", variable, strings.Join(addrs, ", "), last)
}
