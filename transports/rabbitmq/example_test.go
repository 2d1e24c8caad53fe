package rabbitmq_test

import (
	"context"
	"log"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// Declare runs on every new channel, so that a broker that lost its queues gets
// them again.
func ExampleNewSource() {
	source := rabbitmq.NewSource(rabbitmq.SourceConfig{
		URL:   os.Getenv("AMQP_URL"),
		Queue: "payments",
		Declare: func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare("payments", true, false, false, false, nil)
			return err
		},
	})
	_ = source // give it to inbox.Inbox.Run
}

// A message counts as published when the broker confirmed it and did not send
// it back.
func ExampleNewPublisher() {
	ctx := context.Background()
	publisher := rabbitmq.NewPublisher(rabbitmq.PublisherConfig{
		URL:        os.Getenv("AMQP_URL"),
		RoutingKey: func(*handler.Message) string { return "payments" },
	})
	errs := publisher.Publish(ctx, []*handler.Message{{ID: "evt_1", Type: "order.paid", Payload: []byte(`{"id": 42}`)}})
	if errs[0] != nil { // one result for each message
		log.Println(errs[0])
	}
	if err := publisher.Close(ctx); err != nil {
		log.Println(err)
	}
}

// A relay's events go to an exchange for each aggregate type. A queue takes from
// it what it is bound for by the events' types, which are the routing keys.
func ExamplePublisherConfig_exchangeOf() {
	publisher := rabbitmq.NewPublisher(rabbitmq.PublisherConfig{
		URL:        os.Getenv("AMQP_URL"),
		ExchangeOf: outbox.AggregateType,
		Declare: func(ch *amqp.Channel) error { // or leave it to those who run the broker
			return ch.ExchangeDeclare("order", amqp.ExchangeTopic, true, false, false, false, nil)
		},
	})
	_ = publisher // give it to outbox.NewRelay
}
