package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/services"
)

func TestRun_Answers(t *testing.T) { // changes the environment: not parallel
	services.Postgres(t) // skips without a database
	var out bytes.Buffer

	require.NoError(t, run(t.Context(), []string{services.PostgresVariable}, &out))
	require.Contains(t, out.String(), services.PostgresVariable)
}

func TestRun_Unreachable(t *testing.T) { // changes the environment: not parallel
	tests := []struct{ name, variable, value string }{
		{name: "Postgres", variable: services.PostgresVariable, value: "postgres://u:secret@127.0.0.1:1/db"},
		{name: "PostgresMalformed", variable: services.PostgresVariable, value: "postgres://u:secret@host:port/"},
		{name: "Kafka", variable: services.KafkaVariable, value: "127.0.0.1:1"},
		{name: "KafkaEmpty", variable: services.KafkaVariable, value: " , "},
		{name: "RabbitMQ", variable: services.RabbitMQVariable, value: "amqp://u:secret@127.0.0.1:1/"},
		{name: "RabbitMQMalformed", variable: services.RabbitMQVariable, value: "amqp://u:sec ret@host:port/"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(tt.variable, tt.value)

			err := run(t.Context(), []string{tt.variable}, new(bytes.Buffer))

			require.ErrorContains(t, err, tt.variable)
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "sec ret")
		})
	}
}
