package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	watchTimeout = 10 * time.Second
	watchCalm    = 30 * time.Second // between looks while all is well
	watchTrouble = 3 * time.Second  // and while it is not
)

// watch asks the brokers for the topics now and then, until ctx ends. The
// client itself waits in silence for a broker that is away and for a topic
// that does not exist.
func (m *member) watch(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	well := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		was := well
		well = m.look(ctx)
		if well && !was {
			m.report.logger.InfoContext(ctx, "Kafka is reachable and has all topics")
			m.client.ForceMetadataRefresh() // or the client finds out within minutes
		}
		if well {
			timer.Reset(watchCalm)
		} else {
			timer.Reset(watchTrouble)
		}
	}
}

// look reports whether all is well, and logs what is not.
func (m *member) look(ctx context.Context) bool {
	asking, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	topics, err := askForTopics(asking, m.client, m.source.config.Topics)
	todo, isFatal := verdict(err)
	switch {
	case ctx.Err() != nil:
		return true // the Run ends; an error says nothing
	case isFatal:
		m.fail(fmt.Errorf("ask the brokers for the topics: %w: %s", err, todo))
		return false
	case err != nil:
		m.report.problem("Kafka cannot be reached; trying again", err, "see whether the brokers run, and whether kgo.SeedBrokers, TLS and SASL fit them",
			slog.Any("seed_brokers", m.client.OptValue(kgo.SeedBrokers)))
		return false
	}
	well := true
	for i := range topics {
		err := kerr.ErrorForCode(topics[i].ErrorCode)
		if err == nil {
			continue
		}
		well = false
		name := ""
		if topics[i].Topic != nil {
			name = *topics[i].Topic
		}
		todo, isFatal := verdict(err)
		switch {
		case isFatal:
			m.fail(fmt.Errorf("ask for topic %q: %w: %s", name, err, todo))
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			m.report.problem("a topic does not exist; waiting for it", fmt.Errorf("ask for topic %q: %w", name, err),
				"make the topic, or correct SourceConfig.Topics")
		default:
			m.report.problem("a topic is not available; waiting for it", fmt.Errorf("ask for topic %q: %w", name, err),
				"see whether the brokers are well")
		}
	}
	return well
}

func askForTopics(ctx context.Context, client *kgo.Client, names []string) ([]kmsg.MetadataResponseTopic, error) {
	// A ping tries each broker once and says at once what is wrong with it; a
	// request goes on trying.
	if err := client.Ping(ctx); err != nil {
		return nil, err
	}
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	return resp.Topics, nil
}
