package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Kafka is what the checks of topics need of a [kadm.Client].
type Kafka interface {
	DescribeTopicConfigs(ctx context.Context, topics ...string) (kadm.ResourceConfigs, error)
	FetchOffsets(ctx context.Context, group string) (kadm.OffsetResponses, error)
}

const topicCheck = "topic"

// Topics compares how long topics keep records with what each consumer
// remembers.
func Topics(ctx context.Context, kafka Kafka, topics []string, consumers []Consumer) []Finding {
	var findings []Finding
	for _, name := range topics {
		t, err := readTopic(ctx, kafka, name)
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			findings = append(findings, Finding{
				Check: topicCheck, Object: name, Level: Problem,
				Found: "the topic does not exist", Why: "a consumer waits for it", Do: "make it, or correct its name",
			})
			continue
		}
		if err != nil {
			findings = append(findings, Unasked(topicCheck, name, err, "see whether the brokers answer, and grant DESCRIBE_CONFIGS on the topic"))
			continue
		}
		for _, c := range consumers {
			findings = append(findings, t.compare(c))
		}
	}
	return findings
}

// GroupTopics compares, for each consumer, the topics that its group has read. The
// group has the name of the consumer, unless another one is given.
func GroupTopics(ctx context.Context, kafka Kafka, group string, consumers []Consumer) []Finding {
	var findings []Finding
	for _, c := range consumers {
		name := group
		if name == "" {
			name = c.Name
		}
		offsets, err := kafka.FetchOffsets(ctx, name)
		if err != nil {
			findings = append(findings, Unasked("group", name, fmt.Errorf("ask which topics the group reads: %w", err),
				"see whether the brokers answer, and grant DESCRIBE on the group; or name the topics with -topics"))
			continue
		}
		var topics []string
		for topic := range offsets {
			topics = append(topics, topic)
		}
		slices.Sort(topics)
		if len(topics) == 0 {
			findings = append(findings, Finding{
				Check: "group", Object: name, Level: NotChecked,
				Found: "the group has committed no offsets, so its topics are not known",
				Why:   "a topic may keep records for longer than consumer " + c.Name + " remembers",
				Do:    "name the topics with -topics, or the group of consumer " + c.Name + " with -consumer and -group",
			})
		}
		findings = append(findings, Topics(ctx, kafka, topics, []Consumer{c})...)
	}
	return findings
}

// topic is how long a topic keeps what is in it.
type topic struct {
	name      string
	retention time.Duration // forever, or how long
	bytes     int64         // of a partition that are kept; negative: all
	segment   time.Duration // how long a segment may take to fill: its oldest record waits for its youngest
	compacts  bool          // and never deletes
}

func readTopic(ctx context.Context, kafka Kafka, name string) (topic, error) {
	t := topic{name: name}
	configs, err := kafka.DescribeTopicConfigs(ctx, name)
	var config kadm.ResourceConfig
	if err == nil {
		config, err = configs.On(name, nil)
	}
	if err == nil {
		err = config.Err
	}
	if err != nil {
		return t, fmt.Errorf("ask for the configuration of the topic: %w", err)
	}
	value := func(key string) string {
		for _, c := range config.Configs {
			if c.Key == key && c.Value != nil {
				return *c.Value
			}
		}
		return ""
	}
	policies := strings.Split(strings.ReplaceAll(value("cleanup.policy"), " ", ""), ",")
	t.compacts = slices.Contains(policies, "compact") && !slices.Contains(policies, "delete")
	if t.retention, err = milliseconds(value("retention.ms")); err != nil {
		return t, fmt.Errorf("read retention.ms of the topic: %w", err)
	}
	if t.segment, err = milliseconds(value("segment.ms")); err != nil {
		return t, fmt.Errorf("read segment.ms of the topic: %w", err)
	}
	if t.bytes, err = strconv.ParseInt(value("retention.bytes"), 10, 64); err != nil {
		return t, fmt.Errorf("read retention.bytes of the topic: %w", err)
	}
	return t, nil
}

func milliseconds(text string) (time.Duration, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return ofMilliseconds(n), err
}

// ofMilliseconds is a time of a broker's, in which -1 is for ever. So is what no
// clock will see; half of what there is leaves room to add two of them.
func ofMilliseconds(n int64) time.Duration {
	if n < 0 || n > math.MaxInt64/int64(time.Millisecond)/2 {
		return forever
	}
	return time.Duration(n) * time.Millisecond
}

func (t topic) compare(c Consumer) Finding {
	h := history{
		check: topicCheck, name: t.name,
		holds: t.retention, what: "the topic keeps records", lower: "lower retention.ms of the topic",
		endless: Problem, comesBack: comesBack(c),
	}
	switch {
	case t.compacts:
		h.holds, h.what, h.lower = forever, "the topic is compacted and keeps records", "add delete to its cleanup.policy and set retention.ms"
	case t.retention < 0 && t.bytes >= 0:
		h.what = fmt.Sprintf("the topic keeps %d bytes of a partition, however old, and a quiet one", t.bytes)
		h.lower, h.endless = "set retention.ms of the topic", Warning
	case t.retention < 0:
		h.lower = "set retention.ms of the topic"
	}
	f := h.compare(c)
	if oldest := t.retention + t.segment; f.Level == OK && c.Retention > 0 && h.holds >= 0 && (t.segment < 0 || c.Retention < oldest) {
		if t.segment < 0 {
			oldest = forever
		}
		f.Level = Warning
		f.Found = fmt.Sprintf("the topic keeps records for %s, and those of a quiet partition for %s: a segment, which takes up to %s, is deleted as a whole; the consumer remembers for %s",
			span(t.retention), span(oldest), span(t.segment), span(c.Retention))
		f.Why = h.comesBack
		f.Do = "lower segment.ms of the topic"
		if oldest >= 0 {
			f.Do = fmt.Sprintf("raise Config.Retention to %s or more, or lower segment.ms of the topic", span(oldest+margin))
		}
	}
	return f
}

// comesBack is what becomes of a record that is read again when its id is
// forgotten: a group was set back, or its offsets were lost.
func comesBack(c Consumer) string {
	const again = "a group that is set back, or that has lost its offsets, gets records again whose ids were purged: "
	switch c.Settings.TooOld {
	case "run":
		return again + "they take effect a second time (TooOld is run)"
	case "dead_letter":
		return again + "they become dead letters, reason too_old, and a person must find out what was handled"
	}
	return again + "at best they become dead letters, reason too_old"
}
