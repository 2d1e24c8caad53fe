package main_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/outbox"
)

// Each aggregate type has its exchange. One of them is missing, another has no
// binding: their events wait and say why, the others go on, and so do these when
// that is mended.
func TestRelay_RabbitMQ_ExchangeByType(t *testing.T) {
	t.Parallel()

	url := services.RabbitMQ(t)
	db := pgtest.New(t)
	name := "semel-test-" + strings.ToLower(rand.Text()[:12])
	conn, err := amqp.Dial(url)
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // nothing hangs on it
	ch, err := conn.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare(name, false, true, false, false, nil)
	require.NoError(t, err)
	declare := func(kind string) {
		require.NoError(t, ch.ExchangeDeclare(name+"."+kind, amqp.ExchangeTopic, false, true, false, false, nil))
	}
	bind := func(kind string) { require.NoError(t, ch.QueueBind(name, "*", name+"."+kind, false, nil)) }
	for _, kind := range []string{"order", "invoice", "unbound"} {
		declare(kind)
	}
	bind("order")
	bind("invoice")
	const each = 30
	require.NoError(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		var events []outbox.Event
		for n := range each {
			for _, kind := range []string{"missing", "order", "unbound", "invoice"} {
				events = append(events, outbox.Event{AggregateType: kind, AggregateID: fmt.Sprint(n), Type: kind + ".changed", Version: 1})
			}
		}
		return outbox.NewWriter(db.Schema).Write(t.Context(), tx, events...)
	}))

	p := startRelay(t, db, []string{"AMQP_URL=" + url}, "-exchange-prefix", name+".", "-routing-key", "aggregate-id")

	counts := func() (n [4]int) {
		require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT
			count(*) FILTER (WHERE published_at IS NOT NULL AND aggregatetype IN ('order', 'invoice')),
			count(*) FILTER (WHERE last_error LIKE '%no exchange ''`+name+`.missing''%declare it%' AND aggregatetype = 'missing'),
			count(*) FILTER (WHERE last_error LIKE '%no queue is bound%' AND aggregatetype = 'unbound'),
			count(*) FILTER (WHERE quarantined_at IS NOT NULL)
			FROM outbox`).Scan(&n[0], &n[1], &n[2], &n[3]))
		return n
	}
	require.Eventually(t, func() bool { return counts() == [4]int{2 * each, each, each, 0} }, deadline, 10*time.Millisecond, p.stderr)

	declare("missing")
	bind("missing")
	bind("unbound")
	require.Eventually(t, func() bool { return waiting(t, db) == 0 }, deadline, 10*time.Millisecond, p.stderr)
	p.stop(t, syscall.SIGTERM)
	keys := map[string]int{}
	deliveries, err := ch.Consume(name, "", true, true, false, false, nil)
	require.NoError(t, err)
	for range 4 * each {
		select {
		case d := <-deliveries:
			keys[d.Exchange+" "+d.RoutingKey]++
		case <-time.After(deadline):
			require.FailNow(t, "no delivery", "after %v", keys)
		}
	}
	require.Len(t, keys, 4*each)
	require.Equal(t, 1, keys[name+".order 7"])
}
