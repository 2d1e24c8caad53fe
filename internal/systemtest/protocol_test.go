package systemtest_test

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/internal/faultproxy"
	"github.com/semel-go/semel/transports/kafka"
)

// protocol is a way in which a consumer group shares out its partitions.
type protocol struct {
	name string
	opt  kgo.Opt
	kind string // of the group, as the broker calls it
}

// eachProtocol runs a test with all three: everything is revoked at each
// rebalance, only what moves is, and the broker decides (KIP-848).
func eachProtocol(t *testing.T, test func(t *testing.T, p protocol)) {
	t.Helper()
	for _, p := range []protocol{
		{"Eager", kgo.Balancers(kgo.RangeBalancer()), "classic"},
		{"Cooperative", kgo.Balancers(kgo.CooperativeStickyBalancer()), "classic"},
		{"ServerSide", kgo.ServerSideBalancer(), "consumer"},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

// setup makes a bundle with a topic whose group is of this protocol.
func (p protocol) setup(t *testing.T, partitions int32) (*testBundle, *topic) {
	t.Helper()
	b := setup(t, onKafka, place{partitions: partitions})
	tp := b.broker.(*topic)
	if p.kind == "consumer" { // the times are the broker's to say
		tp.configureGroup(t, map[string]time.Duration{
			"consumer.session.timeout.ms":    shortSession,
			"consumer.heartbeat.interval.ms": shortHeartbeat,
		})
	}
	return b, tp
}

// Times of a group that a test can outlast. A handler may take longer than
// either.
const (
	shortSession   = 1500 * time.Millisecond
	shortHeartbeat = 150 * time.Millisecond
	shortRebalance = 3 * time.Second
)

// source makes a source of tp with short times; what opts say stands.
func (p protocol) source(tp *topic, config kafka.SourceConfig, opts ...kgo.Opt) *kafka.Source {
	config.Group, config.Topics = tp.group, []string{tp.name}
	all := []kgo.Opt{
		kgo.SeedBrokers(tp.brokers...), p.opt,
		kgo.SessionTimeout(shortSession), kgo.HeartbeatInterval(shortHeartbeat), kgo.RebalanceTimeout(shortRebalance),
	}
	return kafka.NewSource(config, append(all, opts...)...)
}

// requireUsed requires that the group is of this protocol: a client that
// cannot have the one it was asked for takes another.
func (p protocol) requireUsed(t *testing.T, tp *topic) {
	t.Helper()
	groups, err := tp.admin.ListGroups(t.Context())
	require.NoError(t, err)
	require.Equal(t, p.kind, groups[tp.group].GroupType)
}

// configureGroup sets what the broker decides for the topic's group. It returns
// when a member that joins will have it.
func (tp *topic) configureGroup(t *testing.T, times map[string]time.Duration) {
	t.Helper()
	group := kmsg.NewIncrementalAlterConfigsRequestResource()
	group.ResourceType, group.ResourceName = kmsg.ConfigResourceTypeGroupConfig, tp.group
	for name, d := range times {
		config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		config.Name, config.Value = name, kmsg.StringPtr(strconv.FormatInt(d.Milliseconds(), 10))
		group.Configs = append(group.Configs, config)
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, group)
	resp, err := req.RequestWith(t.Context(), tp.client)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.Resources[0].ErrorCode))

	asked := kmsg.NewDescribeConfigsRequestResource()
	asked.ResourceType, asked.ResourceName = group.ResourceType, group.ResourceName
	ask := kmsg.NewPtrDescribeConfigsRequest()
	ask.Resources = append(ask.Resources, asked)
	await(t, "the broker to know the times of the group", func() bool {
		resp, err := ask.RequestWith(t.Context(), tp.client)
		require.NoError(t, err)
		known := 0
		for _, c := range resp.Resources[0].Configs {
			if d, ok := times[c.Name]; ok && c.Value != nil && *c.Value == strconv.FormatInt(d.Milliseconds(), 10) {
				known++
			}
		}
		return known == len(times)
	})
}

// through leads all connections of one client to the only broker through a
// proxy, whatever address that broker gives itself.
func (tp *topic) through(t *testing.T) (kgo.Opt, *faultproxy.Proxy) {
	t.Helper()
	require.Len(t, tp.brokers, 1)
	proxy := faultproxy.New(t, tp.brokers[0])
	return kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, proxy.Addr())
	}), proxy
}
