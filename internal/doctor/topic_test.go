package doctor_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/internal/doctor"
	"github.com/semel-go/semel/internal/services"
)

// kafkaBundle makes topics on the real Kafka.
type kafkaBundle struct{ admin *kadm.Client }

func setupKafka(t *testing.T) *kafkaBundle {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Kafka(t)...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &kafkaBundle{kadm.NewClient(client)}
}

// topic makes a topic with a configuration of pairs, key=value.
func (b *kafkaBundle) topic(t *testing.T, pairs ...string) string {
	t.Helper()
	name := "semel-test-" + strings.ToLower(rand.Text()[:12])
	configs := map[string]*string{}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		configs[key] = &value
	}
	require.NoError(t, services.CreateTopic(t.Context(), b.admin, name, 1, configs))
	t.Cleanup(func() { _, _ = b.admin.DeleteTopics(context.WithoutCancel(t.Context()), name) })
	return name
}

func TestTopics(t *testing.T) {
	t.Parallel()

	const thirtyDays, sevenDays, hour = "2592000000", "604800000", "3600000"
	b := setupKafka(t)
	tests := []struct {
		name      string
		configs   []string
		retention time.Duration
		want      doctor.Level
		found, do string
	}{
		{
			name: "Enough", configs: []string{"retention.ms=" + sevenDays}, retention: 14 * day, want: doctor.OK,
			found: "the topic keeps records for 7d, the consumer remembers for 14d",
		},
		{
			name: "TooShort", configs: []string{"retention.ms=" + thirtyDays}, retention: 14 * day, want: doctor.Problem,
			found: "the topic keeps records for 30d, the consumer remembers for 14d",
			do:    "raise Config.Retention to 31d or more, or lower retention.ms of the topic to at most 13d",
		},
		{
			name: "Segment", configs: []string{"retention.ms=" + sevenDays, "segment.ms=" + sevenDays}, retention: 10 * day, want: doctor.Warning,
			found: "the topic keeps records for 7d, and those of a quiet partition for 14d",
			do:    "raise Config.Retention to 15d or more, or lower segment.ms of the topic",
		},
		{
			name: "EndlessSegment", configs: []string{"retention.ms=" + sevenDays, "segment.ms=9223372036854775807"}, retention: 10 * day, want: doctor.Warning,
			found: "and those of a quiet partition for ever", do: "lower segment.ms",
		},
		{
			name: "ForEver", configs: []string{"retention.ms=-1"}, retention: 14 * day, want: doctor.Problem,
			found: "the topic keeps records for ever, the consumer remembers for 14d",
			do:    "set Config.Retention to inbox.KeepForever, or set retention.ms of the topic to at most 13d",
		},
		{
			name: "AsGoodAsForEver", configs: []string{"retention.ms=9223372036854775807"}, retention: 14 * day, want: doctor.Problem,
			found: "the topic keeps records for ever",
		},
		{
			name: "BySize", configs: []string{"retention.ms=-1", "retention.bytes=1000000"}, retention: 14 * day, want: doctor.Warning,
			found: "the topic keeps 1000000 bytes of a partition, however old", do: "set retention.ms of the topic",
		},
		{
			name: "Compacted", configs: []string{"cleanup.policy=compact", "retention.ms=" + hour}, retention: 14 * day, want: doctor.Problem,
			found: "the topic is compacted and keeps records for ever", do: "add delete to its cleanup.policy",
		},
		{
			name: "CompactedAndDeleted", configs: []string{"cleanup.policy=compact,delete", "retention.ms=" + hour, "segment.ms=" + hour}, retention: 14 * day,
			want: doctor.OK, found: "the topic keeps records for 1h",
		},
		{
			name: "CompactedAndRememberedForEver", configs: []string{"cleanup.policy=compact"}, retention: -1, want: doctor.OK,
			found: "for ever, the consumer remembers for ever",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			name := b.topic(t, tt.configs...)

			findings := doctor.Topics(t.Context(), b.admin, []string{name}, remembering(tt.retention))

			require.Len(t, findings, 1)
			f := findings[0]
			require.Equal(t, tt.want, f.Level, f.Found)
			require.Equal(t, name, f.Object)
			require.Equal(t, "shipping", f.Consumer)
			require.Contains(t, f.Found, tt.found)
			if tt.want == doctor.OK {
				require.Empty(t, f.Why+f.Do)
				return
			}
			require.Contains(t, f.Do, tt.do)
			require.Contains(t, f.Why, "reason too_old")
		})
	}
}

// What becomes of a record that is read again is up to the consumer.
func TestTopics_TooOld(t *testing.T) {
	t.Parallel()

	b := setupKafka(t)
	name := b.topic(t, "retention.ms=-1")
	for policy, want := range map[string]string{"run": "they take effect a second time", "dead_letter": "they become dead letters", "": "at best they become dead letters"} {
		consumers := remembering(14 * day)
		consumers[0].Settings.TooOld = policy
		findings := doctor.Topics(t.Context(), b.admin, []string{name}, consumers)
		require.Contains(t, findings[0].Why, want, policy)
	}
}

func TestTopics_Missing(t *testing.T) {
	t.Parallel()

	b := setupKafka(t)
	findings := doctor.Topics(t.Context(), b.admin, []string{"semel-test-missing", b.topic(t)}, remembering(-1))

	require.Equal(t, []doctor.Level{doctor.Problem, doctor.OK}, levels(findings), "the others are looked at")
	require.Equal(t, "the topic does not exist", findings[0].Found)
}

// Without -topics the topics are those that each consumer's group has read.
func TestGroupTopics(t *testing.T) {
	t.Parallel()

	b := setupKafka(t)
	suffix := "-" + strings.ToLower(rand.Text()[:12])
	read, unread := b.topic(t, "retention.ms=-1"), b.topic(t, "retention.ms=-1")
	offsets := kadm.Offsets{}
	offsets.AddOffset(read, 0, 0, -1)
	require.NoError(t, b.admin.CommitAllOffsets(t.Context(), "shipping"+suffix, offsets))
	t.Cleanup(func() { _, _ = b.admin.DeleteGroups(context.WithoutCancel(t.Context()), "shipping"+suffix) })
	consumers := []doctor.Consumer{{Name: "shipping" + suffix, Retention: 14 * day}, {Name: "billing" + suffix, Retention: 14 * day}}

	findings := doctor.GroupTopics(t.Context(), b.admin, "", consumers)
	require.Equal(t, []doctor.Level{doctor.Problem, doctor.NotChecked}, levels(findings))
	require.Equal(t, read, findings[0].Object)
	require.NotEqual(t, unread, findings[0].Object)
	require.Equal(t, "billing"+suffix, findings[1].Object)
	require.Contains(t, findings[1].Found, "committed no offsets")
	require.False(t, findings[1].Failed)

	findings = doctor.GroupTopics(t.Context(), b.admin, "shipping"+suffix, consumers)
	require.Equal(t, []doctor.Level{doctor.Problem, doctor.Problem}, levels(findings), "the group that is named is that of each")
	require.Equal(t, "billing"+suffix, findings[1].Consumer)
}

// silentKafka answers with an error, or without a value.
type silentKafka struct{ err error }

func (k silentKafka) DescribeTopicConfigs(_ context.Context, topics ...string) (kadm.ResourceConfigs, error) {
	return kadm.ResourceConfigs{{Name: topics[0]}}, k.err
}

func (k silentKafka) FetchOffsets(context.Context, string) (kadm.OffsetResponses, error) {
	return nil, k.err
}

// What was asked for and cannot be looked at is no success.
func TestTopics_Unreadable(t *testing.T) {
	t.Parallel()

	errRefused := errors.New("refused")
	for _, findings := range [][]doctor.Finding{
		doctor.Topics(t.Context(), silentKafka{errRefused}, []string{"payments"}, remembering(14*day)),
		doctor.GroupTopics(t.Context(), silentKafka{errRefused}, "", remembering(14*day)),
	} {
		require.Len(t, findings, 1)
		require.Equal(t, doctor.NotChecked, findings[0].Level)
		require.True(t, findings[0].Failed)
		require.Contains(t, findings[0].Found, "refused")
	}
	findings := doctor.Topics(t.Context(), silentKafka{}, []string{"payments"}, remembering(14*day))
	require.True(t, findings[0].Failed)
	require.Contains(t, findings[0].Found, "read retention.ms of the topic")
}
