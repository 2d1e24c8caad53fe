package campaign

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
)

// broker is where the messages of one group wait.
type broker interface {
	handler.Publisher

	// attach prepares a child that was not started yet to consume. detach is
	// called when it has ended.
	attach(cmd *exec.Cmd) (detach func(), err error)

	// close deletes the topic or queue.
	close(ctx context.Context) error
}

// open makes a topic or queue of its own for a group.
func open(ctx context.Context, s spec, topic string) (broker, error) {
	var b broker
	var err error
	switch s.broker {
	case wire.Memory:
		b = openMemory(topic)
	case wire.Kafka:
		b, err = openKafka(ctx, topic)
	case wire.RabbitMQ:
		b, err = openRabbitMQ(ctx, topic, s.crew.single)
	default:
		err = fmt.Errorf("unknown broker %q", s.broker)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare %s for %s: %w", s.broker, s.point, err)
	}
	return b, nil
}

// itself is attach for a broker that a child reaches by itself.
func itself() (detach func(), err error) { return func() {}, nil }
