package systemtest_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/faultproxy"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/kafka"
)

// The connection breaks at any request whatever, on the way into the
// group, while it fetches and commits, or on the way out. Each kind of request
// in turn is one that the broker does not get, then one whose answer does not
// come.
func TestCut_Kafka(t *testing.T) {
	t.Parallel()

	always := []string{"ApiVersions", "Metadata", "FindCoordinator", "OffsetFetch", "ListOffsets", "Fetch", "OffsetCommit"}
	tests := []struct {
		name              string
		opt               kgo.Opt
		running, stopping []string
	}{
		{
			name: "Classic", opt: kgo.Balancers(kgo.CooperativeStickyBalancer()),
			running: []string{"JoinGroup", "SyncGroup", "Heartbeat"}, stopping: []string{"LeaveGroup"},
		},
		{ // KIP-848
			name: "ServerSide", opt: kgo.ServerSideBalancer(),
			running: []string{"ConsumerGroupHeartbeat"}, stopping: []string{"ConsumerGroupHeartbeat"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			brokers := services.Kafka(t)
			require.Len(t, brokers, 1, "the proxy stands before one broker")
			tp := newTopic(t, place{})
			send(t, tp, messages(0, cutMessages)...)
			sweep := &cutSweep{
				framing:  faultproxy.Kafka(),
				addr:     brokers[0],
				commits:  true,
				kind:     kafkaKind,
				timed:    "ConsumerGroupHeartbeat",
				running:  map[faultproxy.Side][]string{faultproxy.FromClient: append(always[:len(always):len(always)], tt.running...)},
				stopping: map[faultproxy.Side][]string{faultproxy.FromClient: append([]string{"OffsetCommit"}, tt.stopping...)},
			}
			sweep.place = func(t *testing.T, name string) cutPlace { return newCutGroup(t, tp, name, tt.opt) }
			sweep.run(t, "kafka-"+tt.name)
		})
	}
}

// kafkaKind names a request.
func kafkaKind(frame []byte) string {
	return kmsg.NameForKey(int16(binary.BigEndian.Uint16(frame[4:]))) //nolint:gosec // the key is 16 bits
}

// cutGroup is the group of one consumer of a sweep. All read the same topic.
type cutGroup struct {
	topic *topic
	opt   kgo.Opt
}

func newCutGroup(t *testing.T, tp *topic, name string, opt kgo.Opt) *cutGroup {
	t.Helper()
	own := *tp
	own.group = fmt.Sprintf("%s-%s-%s", tp.group, name, rand.Text())
	own.configureGroup(t, map[string]time.Duration{ // or a cut heartbeat would be missed for long
		"consumer.session.timeout.ms":    6 * time.Second,
		"consumer.heartbeat.interval.ms": 200 * time.Millisecond,
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, _ = tp.admin.DeleteGroups(ctx, own.group)
	})
	return &cutGroup{&own, opt}
}

// source implements [cutPlace]. The broker names an address of its own, which
// the dialler takes for the proxy's.
func (g *cutGroup) source(addr string) handler.Source {
	return kafka.NewSource(
		kafka.SourceConfig{Group: g.topic.group, Topics: []string{g.topic.name}, Logger: slog.New(slog.DiscardHandler)},
		kgo.SeedBrokers(addr),
		kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}),
		g.opt,
		kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.RebalanceTimeout(20*time.Second),
		kgo.MetadataMinAge(100*time.Millisecond),
	)
}

// left implements [cutPlace].
func (g *cutGroup) left() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	offsets, err := g.topic.admin.FetchOffsets(ctx, g.topic.group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return 0, err
	}
	committed := 0
	offsets.Each(func(o kadm.OffsetResponse) { committed += int(max(o.At, 0)) })
	return cutMessages - committed, nil
}

// abandoned implements [cutPlace]. The broker may know of a member that could
// not take its leave until its session is over: the next one waits for that.
func (g *cutGroup) abandoned() (bool, error) { return true, nil }
