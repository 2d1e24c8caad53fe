package main_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/internal/services"
)

// started makes db one in which consumers have started, all in the same way but
// for how long they remember.
func started(t *testing.T, db *pgtest.DB, retention time.Duration, consumers ...string) {
	t.Helper()
	store := dedup.NewStore(db.Schema)
	for _, consumer := range consumers {
		require.NoError(t, store.Register(t.Context(), db.Pool, consumer))
		require.NoError(t, store.NoteSettings(t.Context(), db.Pool, consumer, dedup.Settings{
			Workers: 8, PoolSize: 10, Retention: retention, HandlerTimeout: 30 * time.Second, TooOld: "dead_letter",
			RetryAttempts: 8, RetryMaxAge: 24 * time.Hour, DeadLetterRetention: -1,
		}))
	}
}

// doctor runs semel doctor on the schema of db, with variables.
func doctor(t *testing.T, db *pgtest.DB, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := program(ctx, db.URL, append([]string{"doctor", "-schema", db.Schema}, args...)...)
	cmd.Env = append(cmd.Env, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// aTopic makes a topic that keeps its records for so long.
func aTopic(t *testing.T, retention time.Duration) (admin *kadm.Client, name string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Kafka(t)...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	admin = kadm.NewClient(client)
	name = "semel-test-" + strings.ToLower(rand.Text()[:12])
	ms := strconv.FormatInt(retention.Milliseconds(), 10)
	require.NoError(t, services.CreateTopic(t.Context(), admin, name, 1, map[string]*string{"retention.ms": &ms, "segment.ms": &ms}))
	t.Cleanup(func() { _, _ = admin.DeleteTopics(context.WithoutCancel(t.Context()), name) })
	return admin, name
}

const day = 24 * time.Hour

// What is right, what is not, and what is not known, as a person and as a machine
// sees it.
func TestDoctor(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	started(t, db, 14*day, "shipping")
	require.NoError(t, dedup.NewStore(db.Schema).Register(t.Context(), db.Pool, "billing"))
	_, err := db.Pool.Exec(t.Context(), `INSERT INTO processed_messages (consumer_id, message_id, outcome, processed_at)
		VALUES (consumer_id('shipping'), gen_random_uuid(), 1, now() - interval '16 days')`)
	require.NoError(t, err)

	r := doctor(t, db, nil)
	require.Zero(t, r.code, r.stderr)
	require.Empty(t, r.stderr)
	requireGolden(t, "doctor.txt", r.stdout)

	r = doctor(t, db, nil, "-consumer", "shipping", "-json")
	require.Zero(t, r.code, r.stderr)
	requireGolden(t, "doctor.json", r.stdout)
}

// All is well: nothing but that is said.
func TestDoctor_Well(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	started(t, db, 14*day, "shipping")

	r := doctor(t, db, nil)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "\n0 problems, 0 warnings, 0 not checked, ")
	require.NotContains(t, r.stdout, "why:")
}

// Somebody has changed the settings of one consumer by hand to what is none: the
// doctor says whose, and looks at the others.
func TestDoctor_SettingsByHand(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	started(t, db, 14*day, "billing", "shipping")
	_, err := db.Pool.Exec(t.Context(), `UPDATE consumers SET settings = '{"retention": "14d"}' WHERE name = 'billing'`)
	require.NoError(t, err)

	r := doctor(t, db, nil)

	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "not everything that was asked for could be looked at")
	require.Contains(t, r.stdout, `read the settings of consumer "billing": `)
	require.Contains(t, r.stdout, "retries, consumer shipping: a message is retried for 24h")
}

// Case D14: rows were purged, and then Kafka delivered their messages again
// (wolverine#1725, NServiceBus outbox docs). The doctor refuses such a retention
// before anything is purged, and before the consumer has started.
func TestDoctor_TopicOutlivesWhatIsRemembered(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	admin, name := aTopic(t, 30*day)
	brokers := "KAFKA_BROKERS=" + strings.Join(services.Kafka(t), ",")
	const found = "the topic keeps records for 30d"

	r := doctor(t, db, []string{brokers}, "-topics", name, "-consumer", "shipping", "-retention", "14d")
	require.Equal(t, 2, r.code, r.stdout+r.stderr)
	require.Empty(t, r.stderr)
	require.Contains(t, oneSpaced(r.stdout), "problem topic "+name+", consumer shipping: "+found+", the consumer remembers for 14d")
	require.Contains(t, oneSpaced(r.stdout), "do: raise Config.Retention to 31d or more, or lower retention.ms of the topic to at most 13d")

	// By what the consumer noted, and by what its group has read.
	consumer := "shipping-" + strings.ToLower(rand.Text()[:12])
	started(t, db, 14*day, consumer)
	offsets := kadm.Offsets{}
	offsets.AddOffset(name, 0, 0, -1)
	require.NoError(t, admin.CommitAllOffsets(t.Context(), consumer, offsets))
	t.Cleanup(func() { _, _ = admin.DeleteGroups(context.WithoutCancel(t.Context()), consumer) })
	r = doctor(t, db, []string{brokers}, "-json")
	require.Equal(t, 2, r.code, r.stdout+r.stderr)
	require.Contains(t, r.stdout, found+", the consumer remembers for 14d")
	require.Contains(t, r.stdout, `"object": "`+name+`"`)

	// Raised to what it says, all is well.
	started(t, db, 61*day, consumer) // the segment takes as long as the topic keeps
	r = doctor(t, db, []string{brokers})
	require.Zero(t, r.code, r.stdout+r.stderr)
	require.Contains(t, oneSpaced(r.stdout), "ok topic "+name+", consumer "+consumer+": "+found+", the consumer remembers for 61d")
}

// oneSpaced is text as one line.
func oneSpaced(text string) string { return strings.Join(strings.Fields(text), " ") }

// The queue keeps messages for longer than they are remembered, and drops some.
func TestDoctor_Queues(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	started(t, db, 14*day, "shipping")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "hunter2" || r.URL.EscapedPath() != "/api/queues/shop/payments" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"name": "payments", "type": "quorum", "arguments": {"x-delivery-limit": 20, "x-message-ttl": 2592000000}, "effective_policy_definition": {}}`))
	}))
	t.Cleanup(server.Close)
	management := strings.Replace(server.URL, "://", "://shop:hunter2@", 1)

	for _, r := range []result{
		doctor(t, db, nil, "-amqp-management", management, "-queues", "payments", "-vhost", "shop"),
		doctor(t, db, []string{"AMQP_MANAGEMENT_URL=" + management}, "-queues", "payments", "-vhost", "shop"),
	} {
		require.Equal(t, 2, r.code, r.stdout+r.stderr)
		text := oneSpaced(r.stdout)
		require.Contains(t, text, "problem queue payments: a message is delivered again 20 times at most, then it is dropped")
		require.Contains(t, text, "problem queue payments, consumer shipping: the queue keeps messages for 30d, the consumer remembers for 14d")
		require.NotContains(t, r.stdout+r.stderr, "hunter2")
	}

	// What was asked for and cannot be looked at is no success.
	r := doctor(t, db, nil, "-amqp-management", management, "-queues", "other", "-vhost", "shop")
	require.Equal(t, 1, r.code, r.stdout)
	require.Contains(t, r.stdout, "it refuses user")
	require.Contains(t, r.stderr, "not everything that was asked for could be looked at")
	require.NotContains(t, r.stdout+r.stderr, "hunter2")
}

// Brokers that are away are no success either, and the rest is looked at.
func TestDoctor_KafkaAway(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	started(t, db, 14*day, "shipping")

	r := doctor(t, db, nil, "-kafka", "127.0.0.1:1", "-topics", "payments") // port 1: nobody listens
	require.Equal(t, 1, r.code, r.stdout)
	require.Contains(t, oneSpaced(r.stdout), "not checked topic: ask Kafka at 127.0.0.1:1: ")
	require.Contains(t, r.stdout, "what is committed is on the server's disk")
}

func TestDoctor_PgBouncer(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	through := &pgtest.DB{Schema: db.Schema, URL: db.PgBouncer(t)}
	for range 2 {
		r := doctor(t, through, nil)
		require.Equal(t, 2, r.code, r.stdout+r.stderr)
		require.Contains(t, oneSpaced(r.stdout), "problem pooler: a pooler in transaction mode is between, and loses prepared statements")
		require.Contains(t, r.stdout, "default_query_exec_mode=cache_describe")
	}
	through.URL += "&default_query_exec_mode=cache_describe"
	r := doctor(t, through, nil)
	require.Zero(t, r.code, r.stdout+r.stderr)
	require.Contains(t, oneSpaced(r.stdout), "asks for no prepared statements")
}

// The connection string may be that of an application's pool.
func TestDoctor_PoolsConnectionString(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	r := doctor(t, &pgtest.DB{Schema: db.Schema, URL: db.URL + "&pool_max_conns=8&pool_min_conns=1"}, nil)
	require.Zero(t, r.code, r.stdout+r.stderr)
}

func TestDoctor_SynchronousCommit(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	r := doctor(t, &pgtest.DB{Schema: db.Schema, URL: db.URL + "&synchronous_commit=off"}, nil)
	require.Equal(t, 2, r.code, r.stdout+r.stderr)
	require.Contains(t, r.stdout, "synchronous_commit is off on this connection")
}

// Tables that are missing, or of another version, are a problem; what needs no
// tables is looked at.
func TestDoctor_NoTables(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	_, name := aTopic(t, 30*day)
	r := doctor(t, &pgtest.DB{Schema: db.Schema + "_missing", URL: db.URL}, nil,
		"-kafka", strings.Join(services.Kafka(t), ","), "-topics", name, "-consumer", "shipping", "-retention", "14d")
	require.Equal(t, 2, r.code, r.stdout+r.stderr)
	require.Contains(t, r.stdout, "it has no tables")
	require.Contains(t, r.stdout, "the topic keeps records for 30d")
	require.Contains(t, r.stdout, "2 problems")
}

// Whoever may only look is told what cannot be seen so.
func TestDoctor_Operator(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	started(t, db, 14*day, "shipping")
	r := doctor(t, as(t, db, "-operator"), nil)
	require.Zero(t, r.code, r.stdout+r.stderr)
	require.Contains(t, r.stdout, "this role may play operator and not application")
	require.Contains(t, r.stdout, "0 problems, 0 warnings, 1 not checked")
}

func TestDoctor_Help(t *testing.T) {
	t.Parallel()

	r := semel(t, "", "doctor", "-h")
	require.Zero(t, r.code)
	requireGolden(t, "help_doctor.txt", r.stdout)
}

// A command line that cannot be understood is no problem of the patient: exit
// code 1.
func TestDoctor_Refused(t *testing.T) {
	t.Parallel()

	const nowhere = "postgres://user:hunter2@127.0.0.1:1/db?sslmode=disable" // port 1: nobody listens
	tests := []struct {
		name string
		url  string
		args []string
		want string
	}{
		{name: "NoDatabase", want: "set $DATABASE_URL or give -database"},
		{name: "Unreachable", url: nowhere, want: `connect to database "db"`},
		{name: "UnknownFlag", args: []string{"-nope"}, want: "flag provided but not defined"},
		{name: "Argument", args: []string{"shipping"}, want: "takes no argument"},
		{name: "TopicsWithoutBrokers", args: []string{"-topics", "a"}, want: "no Kafka broker: give -kafka or set $KAFKA_BROKERS"},
		{name: "TopicsAndGroup", args: []string{"-kafka", "a:1", "-topics", "a", "-group", "b"}, want: "-topics and -group exclude each other"},
		{name: "LoginWithoutSecret", args: []string{"-kafka", "a:1", "-kafka-login", "plain"}, want: "-kafka-login needs $KAFKA_USERNAME and $KAFKA_PASSWORD"},
		{name: "QueuesWithoutBroker", args: []string{"-queues", "a"}, want: "-queues needs -amqp-management or $AMQP_MANAGEMENT_URL"},
		{name: "BrokerWithoutQueues", args: []string{"-amqp-management", "http://a"}, want: "say with -queues which queues to look at"},
		{name: "NoTopics", args: []string{"-kafka", "a:1", "-topics", ", "}, want: "-topics and -queues are names"},
		{name: "NoQueues", args: []string{"-amqp-management", "http://a", "-queues", ","}, want: "-topics and -queues are names"},
		{name: "BadManagement", args: []string{"-amqp-management", "amqp://user:hunter2@host", "-queues", "a"}, want: "it is not like http://user:password@host:15672"},
		{name: "NoRetention", args: []string{"-retention", "0d"}, want: "-retention must be more than 0"},
		{name: "BadRetention", args: []string{"-retention", "long"}, want: "it must be like 10m, 36h or 14d"},
		{name: "BadConsumer", args: []string{"-consumer", " "}, want: "-consumer: unusable consumer name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := semel(t, tt.url, append([]string{"doctor"}, tt.args...)...)

			require.Equal(t, 1, r.code, r.stderr)
			require.Empty(t, r.stdout)
			require.Contains(t, r.stderr, tt.want)
			require.NotContains(t, r.stderr, "hunter2")
		})
	}
}
