package services_test

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/services"
)

// fakeTB notes what a helper does with its test.
type fakeTB struct {
	testing.TB
	failed, skipped string
}

func (f *fakeTB) Helper() {}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (f *fakeTB) Skipf(format string, args ...any) {
	f.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// run calls f as a test of its own.
func run(f func(tb testing.TB)) *fakeTB {
	tb := new(fakeTB)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(tb)
	}()
	<-done
	return tb
}

func TestPostgres_Unnamed(t *testing.T) { // changes the environment: not parallel
	tests := []struct {
		name, ci, required string
		wantFailed         bool
	}{
		{name: "Laptop"},
		{name: "CI", ci: "true", wantFailed: true},
		{name: "CISwitchedOff", ci: "false"},
		{name: "Required", required: "required", wantFailed: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(services.PostgresVariable, "")
			t.Setenv("CI", tt.ci)
			t.Setenv("SEMEL_SERVICES", tt.required)

			tb := run(func(tb testing.TB) { services.Postgres(tb) })

			if tt.wantFailed {
				require.Contains(t, tb.failed, services.PostgresVariable)
				require.Empty(t, tb.skipped)
			} else {
				require.Contains(t, tb.skipped, services.PostgresVariable)
				require.Empty(t, tb.failed)
			}
		})
	}
}

func TestKafka(t *testing.T) {
	listener, silent := listen(t), closedPort(t)

	t.Setenv(services.KafkaVariable, silent+", "+listener)
	require.Equal(t, []string{silent, listener}, services.Kafka(t))

	t.Setenv(services.KafkaVariable, silent)
	tb := run(func(tb testing.TB) { services.Kafka(tb) })
	require.Contains(t, tb.failed, services.KafkaVariable)
	require.Contains(t, tb.failed, silent)
}

func TestRabbitMQ(t *testing.T) {
	answering := "amqp://user:secret@" + listen(t) + "/"
	t.Setenv(services.RabbitMQVariable, answering)
	require.Equal(t, answering, services.RabbitMQ(t))

	for _, url := range []string{"amqp://user:secret@" + closedPort(t) + "/", "amqp://user:secret@%zz/", "amqp://user:secret\x7f@host/"} {
		t.Setenv(services.RabbitMQVariable, url)
		tb := run(func(tb testing.TB) { services.RabbitMQ(tb) })
		require.Contains(t, tb.failed, services.RabbitMQVariable)
		require.NotContains(t, tb.failed, "secret")
	}
}

func listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
