package kafka_test

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/kafka"
)

// The client is the source's own, the options are franz-go's: here a static
// member, which takes a restart without a rebalance. The broker is one in this
// process, and where this sink prints, a real program has inbox.Inbox.Run.
func ExampleNewSource() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	cluster, err := kfake.NewCluster(kfake.SeedTopics(1, "payments"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	if err := send(cluster.ListenAddrs(), "payments", &handler.Message{ID: "evt_1", Type: "order.paid"}); err != nil {
		fmt.Println(err)
		return
	}

	source := kafka.NewSource(kafka.SourceConfig{Group: "shipping", Topics: []string{"payments"}},
		kgo.SeedBrokers(cluster.ListenAddrs()...),
		kgo.InstanceID("shipping-1"),
	)
	err = source.Run(ctx, sinkFunc(func(d *handler.Delivery) {
		fmt.Println(d.Message.ID, d.Message.Type, "from", d.Message.Origin.Topic)
		d.Settled() // commit its offset
		stop()
	}))
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// evt_1 order.paid from payments
}

// A publisher takes a client that the user built and closes.
func ExampleNewPublisher() {
	cluster, err := kfake.NewCluster(kfake.SeedTopics(1, "payments"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	publisher := kafka.NewPublisher(client).To("payments")
	errs := publisher.Publish(context.Background(), []*handler.Message{
		{ID: "evt_1", Type: "order.paid", Key: []byte("order-42"), Payload: []byte(`{"id": 42}`)},
		{ID: "evt_2", Type: "order.paid", Key: []byte("order-43"), Payload: []byte(`{"id": 43}`)},
	})
	fmt.Println(errs) // one result for each message
	// Output:
	// [<nil> <nil>]
}

// send publishes a message to a broker.
func send(brokers []string, topic string, msg *handler.Message) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	return kafka.NewPublisher(client).To(topic).Publish(context.Background(), []*handler.Message{msg})[0]
}
