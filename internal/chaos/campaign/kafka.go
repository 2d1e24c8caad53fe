package campaign

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/kafka"
)

const partitions = 4

// kafkaBroker is a topic, and the group of its name.
type kafkaBroker struct {
	handler.Publisher
	topic  string
	client *kgo.Client
}

func openKafka(ctx context.Context, topic string) (broker, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(services.SplitBrokers(os.Getenv(services.KafkaVariable))...))
	if err != nil {
		return nil, err
	}
	if err := services.CreateTopic(ctx, kadm.NewClient(client), topic, partitions, nil); err != nil {
		client.Close()
		return nil, err
	}
	return kafkaBroker{kafka.NewPublisher(client).To(topic), topic, client}, nil
}

func (b kafkaBroker) attach(*exec.Cmd) (detach func(), err error) { return itself() }

func (b kafkaBroker) close(ctx context.Context) error {
	defer b.client.Close()
	admin := kadm.NewClient(b.client)
	_, err := admin.DeleteTopic(ctx, b.topic)
	_, groupErr := admin.DeleteGroup(ctx, b.topic)
	if errors.Is(groupErr, kerr.GroupIDNotFound) { // nobody consumed as one
		groupErr = nil
	}
	return errors.Join(err, groupErr)
}
