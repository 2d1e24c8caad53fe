package inbox_test

import (
	"context"
	"log"
	"os"

	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// RabbitMQ instead of Kafka: only the source differs.
func ExampleInbox_Run_rabbitmq() {
	var in *inbox.Inbox // see the example of the package
	ctx := context.Background()

	source := rabbitmq.NewSource(rabbitmq.SourceConfig{URL: os.Getenv("AMQP_URL"), Queue: "payments"})
	if err := in.Run(ctx, source); err != nil {
		log.Fatal(err)
	}
}
