package main_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/outbox"
)

// deadline is how long a test waits for a state on a busy machine.
const deadline = time.Minute

// relayProcess is semel relay while it runs.
type relayProcess struct {
	cmd    *exec.Cmd
	stderr *lockedBuffer
	ended  chan struct{}
}

// lockedBuffer is read while a process writes into it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// startRelay starts the program, with further variables in its environment.
func startRelay(t *testing.T, db *pgtest.DB, env []string, args ...string) *relayProcess {
	t.Helper()
	p := &relayProcess{cmd: program(context.WithoutCancel(t.Context()), db.URL, append([]string{"relay", "-schema", db.Schema}, args...)...), stderr: &lockedBuffer{}, ended: make(chan struct{})}
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stderr = p.stderr
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// stop ends the relay as a supervisor does.
func (p *relayProcess) stop(t *testing.T, signal syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(signal))
	p.requireEnded(t)
}

// requireEnded requires that the relay ends well and has told what it did in
// JSON.
func (p *relayProcess) requireEnded(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(deadline):
		require.FailNow(t, "the relay does not end", p.stderr.String())
	}
	require.Zero(t, p.cmd.ProcessState.ExitCode(), p.stderr.String())
	var last map[string]any
	for line := range strings.Lines(p.stderr.String()) {
		last = nil
		require.NoError(t, json.Unmarshal([]byte(line), &last), line)
	}
	require.Equal(t, "relay has ended", last["msg"])
}

// waiting is how many events wait.
func waiting(t *testing.T, db *pgtest.DB) int64 {
	t.Helper()
	st, err := outbox.NewStore(db.Schema).Status(t.Context(), db.Pool)
	require.NoError(t, err)
	total := st.Total()
	return total.Pending + total.Waiting + total.Quarantined
}

const (
	relayedEvents     = 200
	relayedAggregates = 20
)

// publishInTwoRuns ends a relay in the middle of its work, while more is
// written, then has another one do the rest.
func publishInTwoRuns(t *testing.T, db *pgtest.DB, env []string, args ...string) {
	t.Helper()
	write := func(n int) {
		require.NoError(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
			kind := []string{"order", "invoice"}[n%2]
			id, version := n%relayedAggregates, n/relayedAggregates+1
			return outbox.NewWriter(db.Schema).Write(t.Context(), tx, outbox.Event{
				AggregateType: kind, AggregateID: fmt.Sprint(id), Type: kind + ".changed", Version: int64(version), Payload: fmt.Appendf(nil, "%d/%d", id, version),
			})
		}))
	}
	n := 0
	for ; n < relayedEvents/2; n++ {
		write(n)
	}
	first := startRelay(t, db, env, args...)
	require.Eventually(t, func() bool { return waiting(t, db) < relayedEvents/2 }, deadline, time.Millisecond, "it publishes: %s", first.stderr)
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGTERM))
	for ; n < relayedEvents*3/4; n++ { // while it drains
		write(n)
	}
	first.requireEnded(t)
	for ; n < relayedEvents; n++ {
		write(n)
	}
	t.Logf("%d of %d events were left to the second run", waiting(t, db), relayedEvents)

	second := startRelay(t, db, env, args...)
	require.Eventually(t, func() bool { return waiting(t, db) == 0 }, deadline, 10*time.Millisecond, "it publishes the rest: %s", second.stderr)
	second.stop(t, syscall.SIGINT)
}

// requireRelayed requires that the payloads are those of publishInTwoRuns, each
// once and in the order of its aggregate.
func requireRelayed(t *testing.T, payloads []string) {
	t.Helper()
	require.Len(t, payloads, relayedEvents)
	versions := map[int]int{}
	for _, payload := range payloads {
		var id, version int
		_, err := fmt.Sscanf(payload, "%d/%d", &id, &version)
		require.NoError(t, err)
		versions[id]++
		require.Equal(t, versions[id], version, "aggregate %d", id)
	}
}

func TestRelay_Kafka(t *testing.T) {
	t.Parallel()

	brokers := services.Kafka(t)
	db := pgtest.New(t)
	prefix := "semel-test-" + strings.ToLower(rand.Text()[:12]) + "."
	topics := []string{prefix + "order", prefix + "invoice"}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topics...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopics(t.Context(), 3, 1, nil, topics...)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = admin.DeleteTopics(context.WithoutCancel(t.Context()), topics...) })

	publishInTwoRuns(t, db, nil, "-kafka", strings.Join(brokers, ","), "-topic-prefix", prefix, "-batch", "7", "-name", "mine", "-lease", "10s")

	var ends kadm.ListedOffsets
	require.Eventually(t, func() bool { // what the client knows of the topics may be older than they are
		ends, err = admin.ListEndOffsets(t.Context(), topics...)
		return err == nil && ends.Error() == nil
	}, deadline, 10*time.Millisecond)
	var written int64
	ends.Each(func(o kadm.ListedOffset) { written += o.Offset })
	require.Equal(t, int64(relayedEvents), written, "each once: both runs ended well")
	var payloads []string
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for len(payloads) < relayedEvents {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err0())
		fetches.EachRecord(func(r *kgo.Record) { payloads = append(payloads, string(r.Value)) })
	}
	requireRelayed(t, payloads)
}

func TestRelay_RabbitMQ(t *testing.T) {
	t.Parallel()

	url := services.RabbitMQ(t)
	db := pgtest.New(t)
	name := "semel-test-" + strings.ToLower(rand.Text()[:12])
	conn, err := amqp.Dial(url)
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // nothing hangs on it
	ch, err := conn.Channel()
	require.NoError(t, err)
	require.NoError(t, ch.ExchangeDeclare(name, amqp.ExchangeTopic, false, true, false, false, nil))
	_, err = ch.QueueDeclare(name, false, true, false, false, nil)
	require.NoError(t, err)
	for _, key := range []string{"order.changed", "invoice.*"} {
		require.NoError(t, ch.QueueBind(name, key, name, false, nil))
	}

	publishInTwoRuns(t, db, []string{"AMQP_URL=" + url}, "-exchange", name)

	queue, err := ch.QueueDeclarePassive(name, false, true, false, false, nil)
	require.NoError(t, err)
	require.Equal(t, relayedEvents, queue.Messages, "each once: both runs ended well")
	deliveries, err := ch.Consume(name, "", true, true, false, false, nil)
	require.NoError(t, err)
	var payloads []string
	for len(payloads) < relayedEvents {
		select {
		case d := <-deliveries:
			payloads = append(payloads, string(d.Body))
		case <-time.After(deadline):
			require.FailNow(t, "no delivery", "after %d", len(payloads))
		}
	}
	requireRelayed(t, payloads)
}

// What cannot be routed is no success: the exchange has no binding for it.
func TestRelay_RabbitMQ_Unroutable(t *testing.T) {
	t.Parallel()

	url := services.RabbitMQ(t)
	db := pgtest.New(t)
	require.NoError(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		return outbox.NewWriter(db.Schema).Write(t.Context(), tx, outbox.Event{AggregateType: "order", AggregateID: "1", Type: "semel.no.such.queue"})
	}))
	p := startRelay(t, db, []string{"AMQP_URL=" + url, "KAFKA_BROKERS=127.0.0.1:1"}, "-exchange", "amq.direct")

	require.Eventually(t, func() bool {
		st, err := outbox.NewStore(db.Schema).Status(t.Context(), db.Pool)
		require.NoError(t, err)
		return st.Total().Waiting+st.Total().Quarantined == 1
	}, deadline, 10*time.Millisecond, p.stderr)
	p.stop(t, syscall.SIGTERM)
}

// All to one topic, by a login that the cluster asks for.
func TestRelay_KafkaLogin(t *testing.T) {
	t.Parallel()

	const secret = "hunter2"
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "relay", secret), kfake.SeedTopics(1, "all"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	db := pgtest.New(t)
	write := func(id string) {
		require.NoError(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
			return outbox.NewWriter(db.Schema).Write(t.Context(), tx, outbox.Event{AggregateType: "order", AggregateID: id, Type: "t"})
		}))
	}
	write("1")
	brokers := "KAFKA_BROKERS=" + strings.Join(cluster.ListenAddrs(), ",")

	wrong := startRelay(t, db, []string{brokers, "KAFKA_USERNAME=relay", "KAFKA_PASSWORD=" + secret + "x"}, "-topic", "all", "-kafka-login", "scram-sha-256")
	require.Eventually(t, func() bool { return strings.Contains(wrong.stderr.String(), "relay could not publish") }, deadline, 10*time.Millisecond)
	wrong.stop(t, syscall.SIGTERM)
	require.NotContains(t, wrong.stderr.String(), secret)
	require.Equal(t, int64(1), waiting(t, db))

	right := startRelay(t, db, []string{brokers, "KAFKA_USERNAME=relay", "KAFKA_PASSWORD=" + secret}, "-topic", "all", "-kafka-login", "scram-sha-256")
	require.Eventually(t, func() bool { return waiting(t, db) == 0 }, deadline, 10*time.Millisecond, right.stderr)
	right.stop(t, syscall.SIGTERM)
	require.NotContains(t, right.stderr.String(), secret)
}

// Behind PgBouncer in transaction mode no notification comes through, and other
// programs' prepared statements are on its connections: the relay polls, and
// prepares none.
func TestRelay_PgBouncer(t *testing.T) {
	t.Parallel()

	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "all"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	db := pgtest.New(t)
	through := &pgtest.DB{Schema: db.Schema, URL: db.PgBouncer(t)}
	for run := range 2 {
		p := startRelay(t, through, nil, "-kafka", strings.Join(cluster.ListenAddrs(), ","), "-topic", "all")
		require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "relay polls") }, deadline, 10*time.Millisecond, p.stderr)
		for n := range 20 {
			require.NoError(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
				return outbox.NewWriter(db.Schema).Write(t.Context(), tx, outbox.Event{AggregateType: "order", AggregateID: fmt.Sprint(n), Type: "t", Version: int64(run + 1)})
			}))
		}
		require.Eventually(t, func() bool { return waiting(t, db) == 0 }, deadline, 10*time.Millisecond, p.stderr)
		p.stop(t, syscall.SIGTERM)
		require.NotContains(t, p.stderr.String(), "prepared statement")
	}
}

// While the broker is away the relay waits, says so, and ends when it is told.
func TestRelay_BrokerAway(t *testing.T) {
	t.Parallel()

	for name, args := range map[string][]string{
		"Kafka":    {"-kafka", "127.0.0.1:1"},
		"RabbitMQ": {"-amqp", "amqp://user:hunter2@127.0.0.1:1/"},
		"HTTP":     {"-http", "http://user:hunter2@127.0.0.1:1/?hunter2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			db := pgtest.New(t)
			require.NoError(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
				return outbox.NewWriter(db.Schema).Write(t.Context(), tx, outbox.Event{AggregateType: "order", AggregateID: "1", Type: "t"})
			}))
			p := startRelay(t, db, []string{"WEBHOOK_SECRET=" + signingSecret}, append(args, "-lease", "3s")...)
			require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "no attempt is spent") }, deadline, 10*time.Millisecond)

			p.stop(t, syscall.SIGTERM)

			require.NotContains(t, p.stderr.String(), "hunter2")
			records, err := outbox.NewStore(db.Schema).List(t.Context(), db.Pool, outbox.Filter{})
			require.NoError(t, err)
			require.Equal(t, []any{1, outbox.StatePending, 0}, []any{len(records), records[0].State, records[0].Attempts})
		})
	}
}

func TestRelay_Refused(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	few := db.URL + map[bool]string{true: "&", false: " "}[strings.Contains(db.URL, "://")] + "pool_max_conns=2"
	tests := []struct {
		name string
		url  string
		env  []string
		args []string
		code int
		want string
	}{
		{name: "NoBroker", code: 2, want: "no broker: give -kafka or set $KAFKA_BROKERS, or give -amqp or set $AMQP_URL, or give -http or set $WEBHOOK_URL"},
		{name: "TwoBrokers", env: []string{"KAFKA_BROKERS=a:1", "AMQP_URL=amqp://a"}, code: 2, want: "a relay publishes to one broker"},
		{name: "TwoBrokersByFlags", args: []string{"-kafka", "a:1", "-exchange", "x"}, code: 2, want: "a relay publishes to one broker"},
		{name: "BrokerAndEndpoint", args: []string{"-kafka", "a:1", "-http", "https://a/"}, code: 2, want: "a relay publishes to one broker: say -kafka, -amqp or -http"},
		{name: "BrokerBesideWebhook", env: []string{"KAFKA_BROKERS=a:1", "WEBHOOK_URL=https://hooks.example.com/"}, args: []string{"-batch", "-1"}, code: 2, want: "Batch is -1"},
		{name: "NoEndpoint", args: []string{"-http-at-once", "1"}, code: 2, want: "no endpoint: give -http or set $WEBHOOK_URL"},
		{name: "EndpointWithoutSecret", args: []string{"-http", "https://user:hunter2@a/"}, code: 2, want: "nothing to sign with: set $WEBHOOK_SECRET"},
		{name: "EndpointWithBadSecret", args: []string{"-http", "https://a/"}, env: []string{"WEBHOOK_SECRET=hunter2"}, code: 2, want: "secret 1 must begin with whsec_"},
		{name: "EndpointWithBadURL", env: []string{"WEBHOOK_URL=user:hunter2@a", "WEBHOOK_SECRET=" + signingSecret}, code: 2, want: "the URL in $WEBHOOK_URL with the secrets in $WEBHOOK_SECRET: make webhook publisher: URL must be like https://host/path"},
		{name: "EndpointWithoutTLS", args: []string{"-http", "http://user:hunter2@example.com/"}, env: []string{"WEBHOOK_SECRET=" + signingSecret}, code: 2, want: "URL leads to example.com without TLS"},
		{name: "EndpointTimeout", args: []string{"-http", "https://a/", "-http-timeout", "10s", "-lease", "20s"}, env: []string{"WEBHOOK_SECRET=" + signingSecret}, code: 2, want: "-http-timeout is 10s; it must be from 1ms to two fifths of -lease, 8s"},
		{name: "EndpointAtOnce", args: []string{"-http", "https://a/", "-http-at-once", "-1"}, env: []string{"WEBHOOK_SECRET=" + signingSecret}, code: 2, want: "-http-at-once is -1; it must be from 1 to 10000"},
		{name: "TopicWithoutBrokers", args: []string{"-topic", "x"}, code: 2, want: "no Kafka broker: give -kafka or set $KAFKA_BROKERS"},
		{name: "TwoTopics", args: []string{"-kafka", "a:1", "-topic", "x", "-topic-prefix", "y"}, code: 2, want: "exclude each other"},
		{name: "LoginWithoutSecret", args: []string{"-kafka", "a:1", "-kafka-login", "plain"}, code: 2, want: "-kafka-login needs $KAFKA_USERNAME and $KAFKA_PASSWORD"},
		{name: "UnknownLogin", args: []string{"-kafka", "a:1", "-kafka-login", "magic"}, env: []string{"KAFKA_USERNAME=u", "KAFKA_PASSWORD=hunter2"}, code: 2, want: `-kafka-login "magic": it is plain,`},
		{name: "ExchangeWithoutURL", args: []string{"-exchange", "x"}, code: 2, want: "no RabbitMQ: give -amqp or set $AMQP_URL"},
		{name: "TwoExchanges", args: []string{"-amqp", "amqp://a", "-exchange", "x", "-exchange-prefix", "y"}, code: 2, want: "exclude each other"},
		{name: "UnknownRoutingKey", args: []string{"-amqp", "amqp://a", "-routing-key", "x"}, code: 2, want: `-routing-key "x": it is type, aggregate-type or aggregate-id`},
		{name: "RoutingKeyWithoutURL", args: []string{"-routing-key", "type"}, code: 2, want: "no RabbitMQ: give -amqp or set $AMQP_URL"},
		{name: "BadURL", env: []string{"AMQP_URL=amqp://user:hunter2@host:port/"}, code: 2, want: "read the URL in $AMQP_URL"},
		{name: "BadScheme", args: []string{"-amqp", "https://user:hunter2@host/"}, code: 2, want: "read the URL in -amqp"},
		{name: "LongExchange", args: []string{"-amqp", "amqp://a", "-exchange", strings.Repeat("x", 256)}, code: 2, want: "-exchange has 256 bytes, AMQP allows 255"},
		{name: "BadBatch", args: []string{"-kafka", "a:1", "-batch", "-1"}, code: 2, want: "Batch is -1; it must be from 1 to 10000"},
		{name: "ShortRetention", args: []string{"-kafka", "a:1", "-retention", "1s"}, code: 2, want: "Retention is 1s; it must be at least 1m0s"},
		{name: "ShortLease", args: []string{"-kafka", "a:1", "-lease", "1ms"}, code: 2, want: "-lease must be at least 1s"},
		{name: "SmallPool", url: few, args: []string{"-kafka", "a:1"}, code: 2, want: "the pool has 2 connections; the relay needs 4 (raise pool_max_conns)"},
		{name: "Unreachable", url: "postgres://user:hunter2@127.0.0.1:1/db", args: []string{"-kafka", "a:1"}, code: 1, want: `connect to database "db" on 127.0.0.1:1 as "user" (from $DATABASE_URL): `},
		{name: "NoConnectionString", url: "postgres://user:hunter2@[bad/db", args: []string{"-kafka", "a:1"}, code: 2, want: "read the connection string in $DATABASE_URL"},
		{name: "NoTables", args: []string{"-kafka", "a:1", "-schema", "nobodys"}, code: 1, want: "run `semel migrate up -schema \"nobodys\"`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			url := tt.url
			if url == "" {
				url = db.URL
			}
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			cmd := program(ctx, url, append([]string{"relay"}, tt.args...)...)
			cmd.Env = append(cmd.Env, tt.env...)
			out, _ := cmd.CombinedOutput()

			require.Equal(t, tt.code, cmd.ProcessState.ExitCode(), "%s", out)
			require.Contains(t, string(out), tt.want)
			require.NotContains(t, string(out), "hunter2")
		})
	}
}
