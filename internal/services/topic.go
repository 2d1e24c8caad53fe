package services

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// CreateTopic makes a topic and waits until the broker knows it: a busy one
// answers first and learns of it afterwards, and a client that produces in
// between is told that the topic does not exist.
func CreateTopic(ctx context.Context, admin *kadm.Client, topic string, partitions int32, configs map[string]*string) error {
	const brokersDefault = -1
	if _, err := admin.CreateTopic(ctx, partitions, brokersDefault, configs, topic); err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		topics, err := admin.ListTopics(ctx, topic)
		if err == nil && topics[topic].Err == nil && len(topics[topic].Partitions) == int(partitions) && led(topics[topic]) {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait until the broker knows topic %s: %w", topic, context.Cause(ctx))
		}
	}
}

// led reports whether each partition has a leader.
func led(topic kadm.TopicDetail) bool {
	for _, p := range topic.Partitions {
		if p.Err != nil || p.Leader < 0 {
			return false
		}
	}
	return true
}
