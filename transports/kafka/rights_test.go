package kafka_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/semel-go/semel/transports/transporttest"
)

// rightsBundle is a broker that knows users and what they may do.
type rightsBundle struct {
	*testBundle
	protocol kgo.Opt
}

// setupRights makes a bundle whose user shipping has no right at all.
func setupRights(t *testing.T, protocol kgo.Opt) *rightsBundle {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.GroupMinSessionTimeout(time.Second), kfake.BrokerConfigs(map[string]string{"group.consumer.session.timeout.ms": "2000"}),
		kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "shipping", "shipping"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return &rightsBundle{setupOn(t, cluster, cluster.ListenAddrs(), 1, as("admin")), protocol}
}

func as(user string) kgo.Opt { return kgo.SASL(plain.Auth{User: user, Pass: user}.AsMechanism()) }

// start runs a source of the user shipping.
func (b *rightsBundle) start(t *testing.T, config transporttest.SinkConfig) *running {
	t.Helper()
	return start(t, b.source(b.protocol, as("shipping")), config)
}

// right is one of the two that a source needs; Describe comes with Read.
type right struct {
	name string
	of   func(b *rightsBundle) (acl *kadm.ACLBuilder, resource string)
	err  error
	todo string
}

func rights() []right {
	return []right{
		{
			"Topic", func(b *rightsBundle) (*kadm.ACLBuilder, string) { return kadm.NewACLs().Topics(b.topic), b.topic },
			kerr.TopicAuthorizationFailed, "grant the client Read and Describe on the topic",
		},
		{
			"Group", func(b *rightsBundle) (*kadm.ACLBuilder, string) { return kadm.NewACLs().Groups(b.group), b.group },
			kerr.GroupAuthorizationFailed, "grant the client Read on the consumer group",
		},
	}
}

func (r right) acl(b *rightsBundle) *kadm.ACLBuilder {
	acl, _ := r.of(b)
	return acl.Allow("User:shipping").AllowHosts("*").Operations(kadm.OpRead).ResourcePatternType(kadm.ACLPatternLiteral)
}

func (b *rightsBundle) grant(t *testing.T, r right) {
	t.Helper()
	_, err := b.admin.CreateACLs(t.Context(), r.acl(b))
	require.NoError(t, err)
}

func (b *rightsBundle) revoke(t *testing.T, r right) {
	t.Helper()
	results, err := b.admin.DeleteACLs(t.Context(), r.acl(b))
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.Len(t, results[0].Deleted, 1)
}

// requireRefused requires that err says what is missing and what to do.
func (b *rightsBundle) requireRefused(t *testing.T, err error, r right) {
	t.Helper()
	_, resource := r.of(b)
	require.ErrorIs(t, err, r.err)
	require.ErrorContains(t, err, resource)
	require.ErrorContains(t, err, r.todo)
}

// A right that the source's user does not have ends Run, and so does one that
// is taken away while it consumes. What was out comes again to whoever has the
// right next.
func TestSource_Rights(t *testing.T) {
	t.Parallel()

	protocols := map[string]kgo.Opt{"Classic": kgo.Balancers(kgo.CooperativeStickyBalancer()), "ServerSide": kgo.ServerSideBalancer()}
	for name, protocol := range protocols {
		for i, lacks := range rights() {
			t.Run(name+lacks.name, func(t *testing.T) {
				t.Parallel()

				b := setupRights(t, protocol)
				b.produce(t, 0, numbered(0, 3)...)
				b.grant(t, rights()[1-i])
				refused := b.start(t, transporttest.SinkConfig{})
				b.requireRefused(t, refused.await(t), lacks)
				require.Empty(t, refused.sink.Arrived())

				b.grant(t, lacks)
				r := b.start(t, transporttest.SinkConfig{})
				out := r.take(t, 3)
				out[0].Settled()
				b.awaitCommitted(t, 0, 1)
				b.revoke(t, lacks)
				require.Eventually(t, func() bool { return r.source.Stats().LastError != nil || isClosed(out[1].Revoked) }, deadline, tick)
				settle(out[1:])
				b.requireRefused(t, r.await(t), lacks)

				b.grant(t, lacks)
				next := b.start(t, transporttest.SinkConfig{Settle: true})
				b.awaitCommitted(t, 0, 3)
				next.stop(t)
				for _, m := range next.sink.Arrived() {
					require.NotZero(t, m.Origin.Offset, "it was committed")
				}
			})
		}
	}
}
