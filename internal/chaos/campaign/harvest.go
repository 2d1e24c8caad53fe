package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/services"
)

// harvest reads what relays publish, without Semel's own consumers: from the
// beginning, in the broker's order, until ctx ends. complete waits until
// everything that the broker has by now was read.
type harvest interface {
	run(ctx context.Context, see func(seenEvent)) error
	complete(ctx context.Context, copies func() int) error
}

func harvestOf(b wire.Broker, topic string) harvest {
	if b == wire.RabbitMQ {
		return rabbitHarvest{topic}
	}
	return kafkaHarvest{topic}
}

type kafkaHarvest struct{ topic string }

func (h kafkaHarvest) run(ctx context.Context, see func(seenEvent)) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(services.SplitBrokers(os.Getenv(services.KafkaVariable))...),
		kgo.ConsumeTopics(h.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(100*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("read topic %q back: %w", h.topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			headers := make(map[string]string, len(r.Headers))
			for _, header := range r.Headers {
				headers[header.Key] = string(header.Value)
			}
			see(seen(headers, string(r.Key)))
		})
	}
}

func (h kafkaHarvest) complete(ctx context.Context, copies func() int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(services.SplitBrokers(os.Getenv(services.KafkaVariable))...))
	if err != nil {
		return err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, h.topic)
	if err != nil {
		return err
	}
	total := 0
	ends.Each(func(o kadm.ListedOffset) { total += int(o.Offset) })
	return until(ctx, func() (bool, error) { return copies() >= total, nil })
}

type rabbitHarvest struct{ queue string }

func (h rabbitHarvest) run(ctx context.Context, see func(seenEvent)) error {
	return onChannel(func(ch *amqp.Channel) error {
		deliveries, err := ch.Consume(h.queue, "", true, true, false, false, nil)
		if err != nil {
			return err
		}
		for {
			select {
			case <-ctx.Done():
				return nil
			case d, ok := <-deliveries:
				if !ok {
					return fmt.Errorf("read queue %q back: the channel was closed", h.queue)
				}
				headers := make(map[string]string, len(d.Headers))
				for name, value := range d.Headers {
					headers[name] = fmt.Sprint(value)
				}
				if headers[handler.HeaderID] == "" {
					headers[handler.HeaderID] = d.MessageId
				}
				see(seen(headers, headers[handler.HeaderKey]))
			}
		}
	})
}

// complete waits for an empty queue, and then for what was delivered before.
func (h rabbitHarvest) complete(ctx context.Context, copies func() int) error {
	return onChannel(func(ch *amqp.Channel) error {
		before := -1
		return until(ctx, func() (bool, error) {
			q, err := ch.QueueDeclarePassive(h.queue, true, false, false, false, nil)
			last := before
			before = copies()
			return q.Messages == 0 && before == last, err
		})
	})
}

func seen(headers map[string]string, key string) seenEvent {
	e := seenEvent{id: headers[handler.HeaderID], aggregate: key}
	_, _ = fmt.Sscan(headers[handler.HeaderVersion], &e.version)
	return e
}

// until waits for a state.
func until(ctx context.Context, reached func() (bool, error)) error {
	for {
		ok, err := reached()
		if ok || err != nil {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(errStuck, context.Cause(ctx))
		}
	}
}
