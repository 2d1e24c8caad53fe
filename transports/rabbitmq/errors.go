package rabbitmq

import (
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ErrUnroutable is returned by [Publisher.Publish] for a message that the
// broker returned because no queue is bound for it. It is not permanent: the
// binding is missing, not the message wrong, and once somebody adds it the same
// message goes through.
var ErrUnroutable = errors.New("no queue is bound for it")

// ErrExchangeRefused is returned by [Publisher.Publish] for a message to an
// exchange that is missing or internal, or that the user may not write to. It is
// not permanent: once somebody has mended that, the same message goes through.
var ErrExchangeRefused = errors.New("the broker refuses the exchange")

// ErrNotConfirmed is returned by [Publisher.Publish] when the broker refused to
// take responsibility for a message (a full queue that rejects, a node going
// down). The broker may have it all the same.
var ErrNotConfirmed = errors.New("the broker did not confirm it")

// ErrPublisherClosed is returned by [Publisher.Publish] after [Publisher.Close].
var ErrPublisherClosed = errors.New("publisher is closed")

// errShared is why Run ends when the order of the queue was asked for and the
// broker gives the queue to several consumers.
var errShared = errors.New("the queue cannot be kept in order")

// errOccupied is why a source waits that asked to be the only consumer.
var errOccupied = errors.New("another consumer may have the queue")

// refused reports whether the broker said no to something that stands in our
// configuration, so that asking again changes nothing until somebody acts.
// Everything else (resource locked by a connection that is about to die, a
// forced close, an internal error, the network) may pass by itself.
func refused(err error) bool {
	if errors.Is(err, errShared) {
		return true
	}
	var e *amqp.Error
	if !errors.As(err, &e) || (!e.Server && !guessed(err)) {
		return false
	}
	switch e.Code {
	case amqp.AccessRefused, // credentials, permission
		amqp.NotFound,           // queue or exchange is not there
		amqp.PreconditionFailed, // declared before with other properties
		amqp.NotAllowed,         // virtual host missing or closed to the user
		amqp.NotImplemented,     // a stream with this consumer, say
		amqp.CommandInvalid:     // an exchange type that the broker lacks
		return true
	default:
		return false
	}
}

// guessed reports whether the client library only assumes that the broker
// refused us: the socket ended in the middle of the handshake, which is how
// RabbitMQ answers a wrong password, and also what a network fault looks like.
func guessed(err error) bool {
	return errors.Is(err, amqp.ErrCredentials) || errors.Is(err, amqp.ErrVhost)
}

// hasCode reports whether the broker answered with code.
func hasCode(err error, code int) bool {
	var e *amqp.Error
	return errors.As(err, &e) && e.Server && e.Code == code
}
