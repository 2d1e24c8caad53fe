package kafka_test

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/transporttest"
)

func TestSource_WrongConfig(t *testing.T) {
	t.Parallel()

	good := kafka.SourceConfig{Group: "shipping", Topics: []string{"payments"}}
	tests := []struct {
		name   string
		change func(*kafka.SourceConfig)
		opts   []kgo.Opt
		want   []string
	}{
		{name: "NoGroup", change: func(c *kafka.SourceConfig) { c.Group = "" }, want: []string{"SourceConfig.Group is empty"}},
		{name: "NoTopics", change: func(c *kafka.SourceConfig) { c.Topics = nil }, want: []string{"SourceConfig.Topics is empty"}},
		{name: "EmptyTopic", change: func(c *kafka.SourceConfig) { c.Topics = []string{"a", ""} }, want: []string{"SourceConfig.Topics[1] is empty"}},
		{name: "NegativeDrain", change: func(c *kafka.SourceConfig) { c.DrainTimeout = -time.Second }, want: []string{"SourceConfig.DrainTimeout is -1s"}},
		{name: "NegativeRecords", change: func(c *kafka.SourceConfig) { c.WindowRecords = -1 }, want: []string{"SourceConfig.WindowRecords is -1"}},
		{name: "NegativeBytes", change: func(c *kafka.SourceConfig) { c.WindowBytes = -7 }, want: []string{"SourceConfig.WindowBytes is -7"}},
		{
			name:   "AllAtOnce",
			change: func(c *kafka.SourceConfig) { *c = kafka.SourceConfig{WindowRecords: -1} },
			want:   []string{"Group is empty", "Topics is empty", "WindowRecords is -1"},
		},
		{
			name:   "DrainLongerThanRebalance",
			change: func(c *kafka.SourceConfig) { c.DrainTimeout = 46 * time.Second },
			want:   []string{"SourceConfig.DrainTimeout is 46s", "at most 45s"},
		},
		{name: "BlockRebalance", opts: []kgo.Opt{kgo.BlockRebalanceOnPoll()}, want: []string{"kgo.BlockRebalanceOnPoll is set"}},
		{name: "Regex", opts: []kgo.Opt{kgo.ConsumeRegex()}, want: []string{"kgo.ConsumeRegex is set"}},
		{name: "ResetToEnd", opts: []kgo.Opt{kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd())}, want: []string{"kgo.ConsumeResetOffset is the end"}},
		{name: "Autocommit", opts: []kgo.Opt{kgo.AutoCommitMarks()}, want: []string{"build the Kafka client from its options", "autocommit"}},
		{name: "ImpossibleOption", opts: []kgo.Opt{kgo.SessionTimeout(0)}, want: []string{"build the Kafka client from its options", "session timeout"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			config := good
			if tt.change != nil {
				tt.change(&config)
			}
			err := kafka.NewSource(config, tt.opts...).Run(t.Context(), transporttest.NewSink(transporttest.SinkConfig{}))

			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// The defaults are part of the promise.
func TestSource_Defaults(t *testing.T) {
	t.Parallel()

	config, err := kafka.WithDefaults(kafka.SourceConfig{}, time.Minute)

	require.NoError(t, err)
	require.Equal(t, 30*time.Second, config.DrainTimeout)
	require.Equal(t, 10_000, config.WindowRecords)
	require.EqualValues(t, 64<<20, config.WindowBytes)
	require.NotNil(t, config.Logger)
	config, err = kafka.WithDefaults(kafka.SourceConfig{}, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, 15*time.Second, config.DrainTimeout, "below a short rebalance timeout")
}

// A broker that is not there is waited for, aloud: the client alone would wait
// in silence.
func TestSource_BrokerAwayAtStart(t *testing.T) {
	t.Parallel()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	var logged log
	r := start(t, kafka.NewSource(kafka.SourceConfig{Group: "g", Topics: []string{"t"}, Logger: logged.logger()}, kgo.SeedBrokers(address)),
		transporttest.SinkConfig{})

	logged.await(t, "Kafka cannot be reached; trying again")
	require.Contains(t, logged.String(), address)
	require.Contains(t, logged.String(), "connection refused")
	require.Contains(t, logged.String(), "see whether the brokers run")
	require.Error(t, r.source.Stats().LastError)
	require.Equal(t, 1, strings.Count(logged.String(), "cannot be reached"), "not once for every try")
	r.stop(t)
}

// A broker that goes away and comes back is waited for too, and told apart
// from a handler's failure: nothing is returned, nothing is lost.
func TestSource_NetworkComesBack(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, "before")
	var n network
	r := start(t, b.source(n.opt()), transporttest.SinkConfig{})
	d := r.sink.Next(t)
	n.cut()
	d.Settled()
	b.produce(t, 0, "meanwhile")
	n.mend()

	require.Eventually(t, func() bool { return len(r.sink.Arrived()) >= 2 }, deadline, tick)
	for _, d := range r.take(t, 1) {
		require.Equal(t, "meanwhile", string(d.Message.Payload))
		d.Settled()
	}
	b.awaitCommitted(t, 0, 2)
}

// A topic that does not exist yet is waited for, aloud.
func TestSource_MissingTopic(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		missing := b.topic + "-later"
		var logged log
		config := b.config()
		config.Topics = append(config.Topics, missing)
		config.Logger = logged.logger()
		b.produce(t, 0, "here")
		r := start(t, b.sourceOf(config), transporttest.SinkConfig{})
		require.Equal(t, []string{"here"}, payloads(r.take(t, 1)), "the other topic is consumed meanwhile")
		logged.await(t, "a topic does not exist; waiting for it")
		require.Contains(t, logged.String(), missing)
		require.Contains(t, logged.String(), "make the topic")

		b.createTopic(t, missing, 1, nil)
		b.topic = missing
		b.produce(t, 0, "there")
		require.Equal(t, []string{"there"}, payloads(r.take(t, 1)))
	})
}

// What waiting does not mend ends Run, and the error says what to do.
func TestSource_Forbidden(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		fault kfake.Fault
		want  []string
	}{
		{
			name:  "Topic",
			fault: kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Err: kerr.TopicAuthorizationFailed},
			want:  []string{"TOPIC_AUTHORIZATION_FAILED", "grant the client Read and Describe on the topic"},
		},
		{
			name:  "Records",
			fault: kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed},
			want:  []string{"TOPIC_AUTHORIZATION_FAILED", "grant the client Read and Describe on the topic"},
		},
		{
			name:  "Group",
			fault: kfake.Fault{Keys: []kmsg.Key{kmsg.FindCoordinator}, Err: kerr.GroupAuthorizationFailed},
			want:  []string{"join the group", "GROUP_AUTHORIZATION_FAILED", "grant the client Read on the consumer group"},
		},
		{
			name:  "Join",
			fault: kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Err: kerr.InconsistentGroupProtocol},
			want:  []string{"join the group", "INCONSISTENT_GROUP_PROTOCOL", "the same balancers"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t, 1)
			b.produce(t, 0, "record")
			tt.fault.Count = -1
			b.cluster.Fault(tt.fault)
			r := start(t, b.source(), transporttest.SinkConfig{})

			err := r.await(t)
			for _, want := range append(tt.want, b.topic, b.group) {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestSource_WrongPassword(t *testing.T) {
	t.Parallel()

	cluster, err := kfake.NewCluster(kfake.EnableSASL(), kfake.Superuser("PLAIN", "semel", "right"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.SASLAuthenticate}, Err: kerr.SaslAuthenticationFailed, Count: -1})
	source := kafka.NewSource(kafka.SourceConfig{Group: "g", Topics: []string{"t"}, Logger: slog.New(slog.DiscardHandler)},
		kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.SASL(plain.Auth{User: "semel", Pass: "secret"}.AsMechanism()))

	err = start(t, source, transporttest.SinkConfig{}).await(t)
	require.ErrorContains(t, err, "SASL_AUTHENTICATION_FAILED")
	require.ErrorContains(t, err, "check the user and the password")
	require.NotContains(t, err.Error(), "secret")
}

// Case K12: two processes with one static member id fenced each other without
// end.
func TestSource_StaticMemberTwice(t *testing.T) {
	t.Parallel()

	eachBroker(t, 2, func(t *testing.T, b *testBundle) {
		b.produce(t, 0, "record")
		static := kgo.InstanceID("shipping-1")
		one := start(t, b.source(static), transporttest.SinkConfig{})
		d := one.sink.Next(t)
		two := start(t, b.source(static), transporttest.SinkConfig{Settle: true})
		two.awaitStats(t, func(s kafka.SourceStats) bool { return s.Partitions == 2 }, "the newcomer has taken over")
		d.Settled()

		err := one.await(t)
		require.ErrorIs(t, err, kerr.FencedInstanceID)
		require.ErrorContains(t, err, "give every process its own")
		two.stop(t)
	})
}

// A topic made anew under the name of one that is consumed has other records
// under the same offsets.
func TestSource_TopicMadeAnew(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, "old")
	r := start(t, b.source(), transporttest.SinkConfig{Settle: true})
	b.awaitCommitted(t, 0, 1)
	_, err := b.admin.DeleteTopic(t.Context(), b.topic)
	require.NoError(t, err)
	b.createTopic(t, b.topic, 1, nil)

	err = r.await(t)
	require.ErrorIs(t, err, kerr.UnknownTopicID)
	require.ErrorContains(t, err, "the topic was deleted or made anew")
}
