package kafka_test

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/kafka"
)

// The client is the source's own, the options are franz-go's: here a static
// member, which takes a restart without a rebalance.
func ExampleNewSource() {
	source := kafka.NewSource(kafka.SourceConfig{Group: "shipping", Topics: []string{"payments"}},
		kgo.SeedBrokers("localhost:9092"),
		kgo.InstanceID("shipping-1"),
	)
	_ = source // give it to inbox.Inbox.Run
}

// A publisher takes a client that the user built and closes.
func ExampleNewPublisher() {
	client, err := kgo.NewClient(kgo.SeedBrokers("localhost:9092"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	publisher := kafka.NewPublisher(client).To("payments")
	errs := publisher.Publish(context.Background(), []*handler.Message{
		{ID: "evt_1", Type: "order.paid", Key: []byte("order-42"), Payload: []byte(`{"id": 42}`)},
	})
	if errs[0] != nil { // one result for each message
		fmt.Println(errs[0])
	}
}
