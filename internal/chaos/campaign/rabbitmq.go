package campaign

import (
	"context"
	"errors"
	"os"
	"os/exec"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// rabbitBroker is a durable queue, published to through the default exchange.
type rabbitBroker struct {
	*rabbitmq.Publisher
	queue string
}

func openRabbitMQ(ctx context.Context, queue string, singleActive bool) (broker, error) {
	err := onChannel(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-single-active-consumer": singleActive})
		return err
	})
	if err != nil {
		return nil, err
	}
	publisher := rabbitmq.NewPublisher(rabbitmq.PublisherConfig{
		URL:        os.Getenv(services.RabbitMQVariable),
		RoutingKey: func(*handler.Message) string { return queue },
	})
	return rabbitBroker{publisher, queue}, ctx.Err()
}

func (b rabbitBroker) attach(*exec.Cmd) (detach func(), err error) { return itself() }

func (b rabbitBroker) close(ctx context.Context) error {
	err := onChannel(func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(b.queue, false, false, false)
		return err
	})
	return errors.Join(err, b.Close(ctx))
}

func onChannel(do func(*amqp.Channel) error) (err error) {
	conn, err := amqp.Dial(os.Getenv(services.RabbitMQVariable))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	return do(ch)
}
