package rabbitmq

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// A pause may be over before the stint has noticed it. A message that was not
// handed out because of it must not stay behind while the stint goes on.
func TestConsumer_WhatIsKeptBackEndsTheStint(t *testing.T) {
	t.Parallel()

	c := &consumer{Source: NewSource(SourceConfig{})}
	c.Pause()
	back := newGuard(&channel{}, 1)
	var left []bool
	back.left = func(returned bool) { left = append(left, returned) }

	c.handOut(t.Context(), &amqp.Delivery{DeliveryTag: 1}, back, nil)

	require.Equal(t, []bool{false}, left)
	require.Zero(t, c.Stats().InFlight)
}
