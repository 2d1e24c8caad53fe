package main

import (
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// How soon the group notices that a member was killed. The test broker allows
// half a second; a machine that is busy with many children needs more.
const (
	sessionTimeout   = 1500 * time.Millisecond
	heartbeat        = 250 * time.Millisecond
	rebalanceTimeout = 10 * time.Second
)

func source(setup wire.Setup) (handler.OrderedSource, error) {
	switch setup.Broker {
	case wire.Memory:
		return newPipeSource(os.NewFile(wire.MessagesFD, "messages"), os.NewFile(wire.AnswersFD, "answers")), nil
	case wire.Kafka:
		return kafka.NewSource(kafka.SourceConfig{Group: setup.Consumer, Topics: []string{setup.Topic}},
			kgo.SeedBrokers(services.SplitBrokers(os.Getenv(services.KafkaVariable))...),
			kgo.SessionTimeout(sessionTimeout),
			kgo.HeartbeatInterval(heartbeat),
			kgo.RebalanceTimeout(rebalanceTimeout)), nil
	case wire.RabbitMQ:
		return rabbitmq.NewSource(rabbitmq.SourceConfig{
			URL: os.Getenv(services.RabbitMQVariable), Queue: setup.Topic, Prefetch: 30, SingleActiveConsumer: setup.Single,
		}), nil
	default:
		return nil, fmt.Errorf("unknown broker %q", setup.Broker)
	}
}
