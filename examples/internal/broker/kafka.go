// Package broker gives an example a Kafka: the one that $KAFKA_BROKERS names,
// else one in this process.
package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// maxRecordBytes is the largest record a topic takes. Brokers refuse more than
// 1 MB unless they are told.
const maxRecordBytes = 24 << 20

const adminTimeout = 15 * time.Second

// Kafka is a cluster that answers, and a client of it that can publish.
type Kafka struct {
	// Brokers are the addresses to start from. They can be reached from other
	// processes of this machine.
	Brokers []string

	// About says for people which one it is.
	About string

	// Own reports that the cluster lives and ends with this program.
	Own bool

	// Client publishes.
	Client *kgo.Client

	fake *kfake.Cluster
}

// Open returns a cluster that answers.
func Open(ctx context.Context) (*Kafka, error) {
	k := &Kafka{}
	if addresses := os.Getenv("KAFKA_BROKERS"); addresses != "" {
		k.Brokers = strings.Split(strings.ReplaceAll(addresses, " ", ""), ",")
		k.About = "Kafka at " + addresses + " (KAFKA_BROKERS)"
	} else {
		fake, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			return nil, fmt.Errorf("start a Kafka in this process: %w", err)
		}
		k.fake, k.Own, k.Brokers, k.About = fake, true, fake.ListenAddrs(), "Kafka in this process (kfake)"
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Brokers...), kgo.ProducerBatchMaxBytes(maxRecordBytes),
		kgo.DialTimeout(5*time.Second), kgo.RecordDeliveryTimeout(30*time.Second))
	if err != nil {
		k.Close()
		return nil, fmt.Errorf("reach Kafka at %q: %w: correct KAFKA_BROKERS", k.Brokers, err)
	}
	k.Client = client
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		k.Close()
		return nil, fmt.Errorf("reach Kafka at %q: %w: correct KAFKA_BROKERS, or leave it out for one in this process", k.Brokers, err)
	}
	return k, nil
}

// Close ends the client, and a cluster of our own.
func (k *Kafka) Close() {
	if k.Client != nil {
		k.Client.Close()
	}
	if k.fake != nil {
		k.fake.Close()
	}
}

// CreateTopic makes a topic that takes records of [maxRecordBytes].
func (k *Kafka) CreateTopic(ctx context.Context, topic string, partitions int32) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	const brokersDefault = -1
	configs := map[string]*string{"max.message.bytes": kadm.StringPtr(fmt.Sprint(maxRecordBytes))}
	if _, err := kadm.NewClient(k.Client).CreateTopic(ctx, partitions, brokersDefault, configs, topic); err != nil {
		return fmt.Errorf("create Kafka topic %q: %w", topic, err)
	}
	return k.awaitTopic(ctx, topic)
}

// awaitTopic waits until the brokers know the topic: busy ones answer first and
// learn of it afterwards.
func (k *Kafka) awaitTopic(ctx context.Context, topic string) error {
	for {
		topics, err := kadm.NewClient(k.Client).ListTopics(ctx, topic)
		if err == nil && topics[topic].Err == nil && len(topics[topic].Partitions) > 0 {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait until Kafka knows topic %q: %w", topic, context.Cause(ctx))
		}
	}
}

// Committed returns how many records of the topic the group has acknowledged.
func (k *Kafka) Committed(ctx context.Context, group, topic string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	offsets, err := kadm.NewClient(k.Client).FetchOffsets(ctx, group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return 0, nil // it has not begun
	}
	if err != nil {
		return 0, fmt.Errorf("ask Kafka how far group %q is: %w", group, err)
	}
	var n int64
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == topic && o.At > 0 {
			n += o.At // the topic is new: offsets begin at 0 and have no gaps
		}
	})
	return n, nil
}

// Written returns how many records were ever written to the topic.
func (k *Kafka) Written(ctx context.Context, topic string) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	offsets, err := kadm.NewClient(k.Client).ListEndOffsets(ctx, topic)
	if err = errors.Join(err, offsets.Error()); err != nil {
		return 0, fmt.Errorf("ask Kafka for the end of topic %q: %w", topic, err)
	}
	offsets.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n, nil
}

// DeleteTopic deletes a topic, if it is there.
func (k *Kafka) DeleteTopic(ctx context.Context, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	if _, err := kadm.NewClient(k.Client).DeleteTopic(ctx, topic); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("delete Kafka topic %q: %w: delete it by hand", topic, err)
	}
	return nil
}

// ForgetGroup deletes a group, of which static members may be gone without a word.
// One that cannot be deleted expires when it has no members any more.
func (k *Kafka) ForgetGroup(ctx context.Context, group string, members ...string) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	admin := kadm.NewClient(k.Client)
	_, _ = admin.LeaveGroup(ctx, kadm.LeaveGroup(group).Reason("the example is over").InstanceIDs(members...)) // or they left, or never came
	_, _ = admin.DeleteGroup(ctx, group)                                                                       // or it never was
}
