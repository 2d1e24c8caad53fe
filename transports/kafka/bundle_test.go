package kafka_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/transporttest"
)

const (
	deadline = time.Minute
	tick     = 10 * time.Millisecond
)

var errOnceMore = errors.New("once more")

// testBundle is a broker, a topic of its own on it, and a group.
type testBundle struct {
	brokers []string
	cluster *kfake.Cluster // nil on a real broker
	client  *kgo.Client    // produces to the partition a record names
	admin   *kadm.Client
	topic   string
	group   string
}

// eachBroker runs a test on kfake and on the real broker.
func eachBroker(t *testing.T, partitions int32, test func(t *testing.T, b *testBundle)) {
	t.Helper()
	t.Run("Kfake", func(t *testing.T) {
		t.Parallel()
		test(t, setup(t, partitions))
	})
	t.Run("Kafka", func(t *testing.T) {
		t.Parallel()
		test(t, setupOn(t, nil, services.Kafka(t), partitions))
	})
}

// setup makes a bundle on a cluster in this process.
func setup(t *testing.T, partitions int32, opts ...kfake.Opt) *testBundle {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(2), kfake.GroupMinSessionTimeout(time.Second)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return setupOn(t, cluster, cluster.ListenAddrs(), partitions)
}

func setupOn(t *testing.T, cluster *kfake.Cluster, brokers []string, partitions int32, opts ...kgo.Opt) *testBundle {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	b := &testBundle{brokers: brokers, cluster: cluster, client: client, admin: kadm.NewClient(client), group: "group-" + rand.Text()}
	b.topic = b.newTopic(t, partitions, nil)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		_, _ = b.admin.DeleteGroups(ctx, b.group) // a group that never was is no failure
	})
	return b
}

func (b *testBundle) newTopic(t *testing.T, partitions int32, configs map[string]*string) string {
	t.Helper()
	topic := "topic-" + rand.Text()
	b.createTopic(t, topic, partitions, configs)
	return topic
}

func (b *testBundle) createTopic(t *testing.T, topic string, partitions int32, configs map[string]*string) {
	t.Helper()
	require.NoError(t, services.CreateTopic(t.Context(), b.admin, topic, partitions, configs))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		_, _ = b.admin.DeleteTopic(ctx, topic) // some tests delete it themselves
	})
}

// produce writes one record for each value to a partition, one batch.
func (b *testBundle) produce(t *testing.T, partition int32, values ...string) {
	t.Helper()
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, &kgo.Record{Topic: b.topic, Partition: partition, Value: []byte(v)})
	}
	require.NoError(t, b.client.ProduceSync(t.Context(), records...).FirstErr())
}

// config is a source's for the bundle's topic and group.
func (b *testBundle) config() kafka.SourceConfig {
	return kafka.SourceConfig{Group: b.group, Topics: []string{b.topic}, Logger: slog.New(slog.DiscardHandler)}
}

// source makes a source of the bundle's topic and group. Its session is the
// shortest a broker takes as it comes.
func (b *testBundle) source(opts ...kgo.Opt) *kafka.Source {
	return b.sourceOf(b.config(), opts...)
}

func (b *testBundle) sourceOf(config kafka.SourceConfig, opts ...kgo.Opt) *kafka.Source {
	session := 6 * time.Second
	if b.cluster != nil {
		session = 2 * time.Second
	}
	all := []kgo.Opt{
		kgo.SeedBrokers(b.brokers...),
		kgo.SessionTimeout(session),
		kgo.RebalanceTimeout(20 * time.Second),
		kgo.HeartbeatInterval(200 * time.Millisecond),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
	return kafka.NewSource(config, append(all, opts...)...)
}

// committed returns the group's offset in a partition, -1 for none.
func (b *testBundle) committed(t *testing.T, partition int32) int64 {
	t.Helper()
	offset, err := b.askCommitted(t.Context(), partition)
	require.NoError(t, err)
	return offset
}

func (b *testBundle) askCommitted(ctx context.Context, partition int32) (int64, error) {
	offsets, err := b.admin.FetchOffsets(ctx, b.group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return -1, nil
	}
	if o, ok := offsets.Lookup(b.topic, partition); ok {
		return o.At, err
	}
	return -1, err
}

func (b *testBundle) awaitCommitted(t *testing.T, partition int32, want int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, err := b.askCommitted(t.Context(), partition)
		return err == nil && got == want
	}, deadline, tick, "the committed offset of partition %d should become %d", partition, want)
}

func (b *testBundle) commit(t *testing.T, partition int32, offset int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(b.topic, partition, offset, -1)
	require.NoError(t, b.admin.CommitAllOffsets(t.Context(), b.group, offsets))
}

// running is a source while it runs.
type running struct {
	source *kafka.Source
	sink   *transporttest.Sink
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once ended is closed
}

// start runs a source. Whatever becomes of the test, it has ended after it.
func start(t *testing.T, source *kafka.Source, config transporttest.SinkConfig) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // the test decides when it ends
	r := &running{source: source, sink: transporttest.NewSink(config), cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = source.Run(ctx, r.sink)
		r.sink.RunReturned()
	}()
	t.Cleanup(func() {
		r.sink.Refuse(errOnceMore)
		cancel()
		r.sink.ReturnAll(errOnceMore)
		_ = r.await(t) // what a test expects of the error it says itself
		r.sink.RequireNoFault(t)
	})
	return r
}

// await waits for the end of Run and returns its error.
func (r *running) await(t *testing.T) error {
	t.Helper()
	select {
	case <-r.ended:
		return r.err
	case <-time.After(deadline):
		require.Fail(t, "Run did not return")
		return nil
	}
}

// stop ends Run and requires that it ended well.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	require.NoError(t, r.await(t))
}

// take takes n deliveries and leaves them out.
func (r *running) take(t *testing.T, n int) []*handler.Delivery {
	t.Helper()
	all := make([]*handler.Delivery, n)
	for i := range all {
		all[i] = r.sink.Next(t)
	}
	return all
}

// awaitStats waits until the source is as ok says.
func (r *running) awaitStats(t *testing.T, ok func(kafka.SourceStats) bool, what string) {
	t.Helper()
	require.Eventually(t, func() bool { return ok(r.source.Stats()) }, deadline, tick, "%s: %+v", what, r.source.Stats())
}

func settle(deliveries []*handler.Delivery) {
	for _, d := range deliveries {
		d.Settled()
	}
}

func payloads(deliveries []*handler.Delivery) []string {
	all := make([]string, len(deliveries))
	for i, d := range deliveries {
		all[i] = string(d.Message.Payload)
	}
	return all
}

// numbered returns the texts of from up to but not to.
func numbered(from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("record %04d", i))
	}
	return all
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// network is the way of one client to the brokers, and can be cut.
type network struct {
	mu    sync.Mutex // guards the fields below
	down  bool
	conns []net.Conn
}

func (n *network) opt() kgo.Opt { return kgo.Dialer(n.dial) }

func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, kind, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		_ = conn.Close()
		return nil, &net.OpError{Op: "dial", Net: kind, Err: errors.New("the network is cut")}
	}
	n.conns = append(n.conns, conn)
	return conn, nil
}

// cut ends all connections and lets no new one through: to the broker, the
// client is dead.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	for _, c := range n.conns {
		_ = c.Close()
	}
}

func (n *network) mend() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = false
}

// log collects what is logged.
type log struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *log) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *log) await(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(l.String(), text) }, deadline, tick, "%q should be logged", text)
}

// sinkFunc is a sink that takes everything.
type sinkFunc func(*handler.Delivery)

func (f sinkFunc) Deliver(_ context.Context, d *handler.Delivery) error {
	f(d)
	return nil
}

// startSink runs a source with a sink of the test's own until stop is called.
func startSink(t *testing.T, source *kafka.Source, sink handler.Sink) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx, sink) }()
	stop = sync.OnceFunc(func() { cancel(); require.NoError(t, <-ended) })
	t.Cleanup(stop)
	return stop
}
