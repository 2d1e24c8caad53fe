package main_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// statesOf is what became of an aggregate type's events: state and aggregate id,
// in order.
func statesOf(t *testing.T, db *pgtest.DB, kind string) (states string) {
	t.Helper()
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(state || ' ' || aggregateid, ', ' ORDER BY seq), '')
		FROM events WHERE aggregatetype = $1`, kind).Scan(&states))
	return states
}

// lastError is why an event of an aggregate type could not be published.
func lastError(t *testing.T, db *pgtest.DB, kind string) (text string) {
	t.Helper()
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT coalesce(max(last_error), '') FROM outbox WHERE aggregatetype = $1`, kind).Scan(&text))
	return text
}

// A topic that nobody made, a payload over the topic's limit and one over the
// client's: these events are in quarantine with the reason, what follows them in
// their aggregates waits, and all others are published.
func TestRelay_Kafka_Refused(t *testing.T) {
	t.Parallel()

	brokers := services.Kafka(t)
	db := pgtest.New(t)
	prefix := "semel-test-" + strings.ToLower(rand.Text()[:12]) + "."
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	const limit = 10_000
	_, err = admin.CreateTopics(t.Context(), 1, 1, map[string]*string{"max.message.bytes": kadm.StringPtr(fmt.Sprint(limit))}, prefix+"narrow")
	require.NoError(t, err)
	_, err = admin.CreateTopics(t.Context(), 1, 1, nil, prefix+"order")
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = admin.DeleteTopics(context.WithoutCancel(t.Context()), prefix+"narrow", prefix+"order") })
	bytes := make([]byte, 2_000_000) // no compression makes them fit
	_, err = rand.Read(bytes)
	require.NoError(t, err)
	event := func(kind, id string, size int) outbox.Event {
		return outbox.Event{AggregateType: kind, AggregateID: id, Type: "t", Payload: bytes[:size]}
	}
	require.NoError(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		return outbox.NewWriter(db.Schema).Write(t.Context(), tx,
			event("order", "1", 10), event("missing", "1", 10), event("narrow", "1", 2*limit), event("order", "2", len(bytes)),
			event("order", "1", 10), event("missing", "1", 10), event("narrow", "1", 10), event("order", "2", 10),
			event("order", "3", 10), event("narrow", "2", 10))
	}))

	p := startRelay(t, db, nil, "-kafka", strings.Join(brokers, ","), "-topic-prefix", prefix)

	for kind, want := range map[string]struct{ states, err string }{
		"missing": {"quarantined 1, pending 1", "UNKNOWN_TOPIC_OR_PARTITION"},
		"narrow":  {"quarantined 1, pending 1, published 2", "MESSAGE_TOO_LARGE"},
		"order":   {"published 1, quarantined 2, published 1, pending 2, published 3", "MESSAGE_TOO_LARGE"},
	} {
		require.Eventually(t, func() bool { return statesOf(t, db, kind) == want.states }, deadline, 10*time.Millisecond, "%s: %s\n%s", kind, want.states, p.stderr)
		require.Contains(t, lastError(t, db, kind), want.err)
	}
	p.stop(t, syscall.SIGTERM)
	require.Equal(t, 3, strings.Count(p.stderr.String(), "event is in quarantine: a person must decide"))
}

// Rows that were written by hand, past the checks of outbox.Write: a type of 300
// bytes, which AMQP cannot carry as a routing key, and no aggregate id.
func TestRelay_RabbitMQ_WrittenByHand(t *testing.T) {
	t.Parallel()

	url := services.RabbitMQ(t)
	db := pgtest.New(t)
	conn, err := amqp.Dial(url)
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // nothing hangs on it
	ch, err := conn.Channel()
	require.NoError(t, err)
	name := "semel-test-" + strings.ToLower(rand.Text()[:12])
	_, err = ch.QueueDeclare(name, false, true, false, false, nil)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `INSERT INTO outbox (id, aggregatetype, aggregateid, type)
		SELECT gen_random_uuid(), 'order', aggregateid, type
		FROM (VALUES ('1', repeat('t', 300)), ('1', $1), ('2', $1), ('', $1)) AS v (aggregateid, type)`, name)
	require.NoError(t, err)

	p := startRelay(t, db, []string{"AMQP_URL=" + url})

	const want = "quarantined 1, pending 1, published 2, published "
	require.Eventually(t, func() bool { return statesOf(t, db, "order") == want }, deadline, 10*time.Millisecond, p.stderr)
	require.Contains(t, lastError(t, db, "order"), "routing key must have at most 255 bytes, has 300")
	p.stop(t, syscall.SIGTERM)
	queue, err := ch.QueueDeclarePassive(name, false, true, false, false, nil)
	require.NoError(t, err)
	require.Equal(t, 2, queue.Messages)
}

// The tables are of another version than the program.
func TestRelay_OtherVersion(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct{ sql, want string }{
		"Older": {
			fmt.Sprintf(`DELETE FROM schema_migrations WHERE version >= %d`, schema.Version),
			fmt.Sprintf("it is at version %d, version %d is needed: run `semel migrate up -schema", schema.Version-1, schema.Version),
		},
		"Newer": {`INSERT INTO schema_migrations (version, name, oldest_binary) VALUES (99, 'from_the_future', 99)`, "deploy a newer one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			db := pgtest.New(t)
			_, err := db.Pool.Exec(t.Context(), tt.sql)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			cmd := program(ctx, db.URL, "relay", "-schema", db.Schema, "-kafka", "127.0.0.1:1")
			out, _ := cmd.CombinedOutput()

			require.Equal(t, 1, cmd.ProcessState.ExitCode(), "%s", out)
			require.Contains(t, string(out), "start relay: ")
			require.Contains(t, string(out), tt.want)
		})
	}
}
