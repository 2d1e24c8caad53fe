package rabbitmq

import (
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/handler"
)

// message returns what arrived from queue. The properties that other clients
// use fill the fields first, then the headers what is still empty. It accepts
// whatever comes: what is missing stays empty, and the engine decides.
//
// A body is never nil: AMQP has no tombstones.
func message(d *amqp.Delivery, queue string) *handler.Message {
	msg := &handler.Message{
		ID:            d.MessageId,
		Type:          d.Type,
		CorrelationID: d.CorrelationId,
		ContentType:   d.ContentType,
		Payload:       d.Body,
		Headers:       tableHeaders(d.Headers),
		Origin: handler.Origin{
			Transport:   "rabbitmq",
			Topic:       queue,
			Exchange:    d.Exchange,
			RoutingKey:  d.RoutingKey,
			Redelivered: d.Redelivered,
		},
	}
	if msg.Payload == nil {
		msg.Payload = []byte{}
	}
	msg.ReadHeaders()
	if msg.OccurredAt.IsZero() && !d.Timestamp.IsZero() {
		msg.OccurredAt = d.Timestamp.UTC() // last: it has whole seconds, the header has them exactly
	}
	return msg
}

// publishing returns msg as it is sent. Id, type, correlation id and content
// type stand in a property, where other clients look, and in a header, which
// survives a hop through a transport without properties. What is too long for
// a property stands in the header alone.
func publishing(msg *handler.Message) (amqp.Publishing, error) {
	table, err := headersTable(msg.WriteHeaders())
	if err != nil {
		return amqp.Publishing{}, err
	}
	p := amqp.Publishing{
		MessageId:     property(msg.ID),
		Type:          property(msg.Type),
		CorrelationId: property(msg.CorrelationID),
		ContentType:   property(msg.ContentType),
		DeliveryMode:  amqp.Persistent,
		Headers:       table,
		Body:          msg.Payload,
	}
	if msg.OccurredAt.Unix() > 0 { // the property is unsigned
		p.Timestamp = msg.OccurredAt
	}
	return p, nil
}

// property returns value if a short string can hold it, else nothing.
func property(value string) string {
	if len(value) > maxShortString {
		return ""
	}
	return value
}
