package systemtest_test

import (
	"net"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/faultproxy"
	"github.com/semel-go/semel/schema"
)

// A broker that is away when a consumer starts is waited for: Run says in the
// log what it cannot reach, goes on by itself when the broker comes, and ends
// without an error when it is told to before that.
func TestStart_BrokerAway(t *testing.T) {
	eachBroker(t, func(t *testing.T, kind string) {
		b := setup(t, kind, place{})
		recipe := b.broker.recipe()
		upstream := ""
		if kind == onKafka {
			upstream = recipe.Brokers[0]
		} else {
			address, err := url.Parse(recipe.URL)
			require.NoError(t, err)
			upstream = net.JoinHostPort(address.Hostname(), address.Port())
		}
		proxy := faultproxy.New(t, upstream)
		proxy.Refuse(true)
		if kind == onKafka {
			recipe.Brokers = []string{proxy.Addr()} // it leads to the others
		} else {
			address, err := url.Parse(recipe.URL)
			require.NoError(t, err)
			address.Host = proxy.Addr()
			address.User = url.UserPassword(address.User.Username(), "guest")
			recipe.URL = address.String()
		}
		sent := messages(0, 10)
		send(t, b.broker, sent...)

		gone := b.run(t, b.inbox(t, b.Pool, effect, inbox.Config{}), recipe.source(b.log.logger()))
		await(t, "a log line that names the broker", func() bool { return b.log.has("again", proxy.Addr()) })
		gone.finish(t)

		later := b.run(t, b.inbox(t, b.Pool, effect, inbox.Config{}), recipe.source(b.log.logger()))
		proxy.Refuse(false)
		later.awaitSettled(t, len(sent))
		later.finish(t)

		b.requireOneEffectEach(t, ids(sent))
		require.Zero(t, b.broker.left(t))
		require.Empty(t, b.letters(t))
	})
}

// A database that cannot be used at start is an error of Run before anything
// is taken from the broker: it says what was attempted, with what, and what to
// do, and no password.
func TestStart_DatabaseRefused(t *testing.T) {
	eachBroker(t, func(t *testing.T, kind string) {
		b := setup(t, kind, place{})
		sent := messages(0, 10)
		send(t, b.broker, sent...)
		tests := []struct {
			name   string
			change func(*pgxpool.Config)
			schema string
			want   error
			says   []string
		}{
			{
				name: "Unreachable", want: inbox.ErrOutage, says: []string{"127.0.0.1:1", "connection string"},
				change: func(c *pgxpool.Config) {
					c.ConnConfig.Host, c.ConnConfig.Port, c.ConnConfig.Fallbacks = "127.0.0.1", 1, nil
				},
			},
			{
				name: "NoSuchDatabase", want: inbox.ErrOutage, says: []string{"nobody_made_this", "connection string"},
				change: func(c *pgxpool.Config) { c.ConnConfig.Database = "nobody_made_this" },
			},
			{
				name: "NoSuchUser", want: inbox.ErrOutage, says: []string{"nobody", "connection string"},
				change: func(c *pgxpool.Config) { c.ConnConfig.User, c.ConnConfig.Password = "nobody", "hunter2" },
			},
			{name: "NoTables", want: schema.ErrOutdated, schema: "nobody_made_this", says: []string{"semel migrate up"}},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				config, err := pgxpool.ParseConfig(b.URL)
				require.NoError(t, err)
				if tt.change != nil {
					tt.change(config)
				}
				pool, err := pgxpool.NewWithConfig(t.Context(), config)
				require.NoError(t, err)
				t.Cleanup(pool.Close)
				name := b.Schema
				if tt.schema != "" {
					name = tt.schema
				}
				in, err := inbox.New(pool, consumer, effect, inbox.Config{Schema: name, Logger: b.log.logger()})
				require.NoError(t, err)

				r := b.run(t, in, b.broker.recipe().source(b.log.logger()))
				err = r.ended(t)

				t.Log(err)
				require.ErrorIs(t, err, tt.want)
				for _, text := range append(tt.says, `"`+consumer+`"`) {
					require.ErrorContains(t, err, text)
				}
				require.NotContains(t, err.Error(), "hunter2")
				require.Zero(t, r.passed())
			})
		}
		require.Equal(t, len(sent), b.broker.left(t))
	})
}

// A table that is missing at start is an error that names it. One that goes
// missing while the consumer works is an outage: nothing is acknowledged
// without it, no attempt is spent, somebody is told, and it goes on when the
// table is back.
func TestStart_TableMissing(t *testing.T) {
	for _, table := range []string{"processed_messages", "dead_letters"} {
		t.Run(table, func(t *testing.T) {
			eachBroker(t, func(t *testing.T, kind string) {
				b := setup(t, kind, place{})
				shown, hidden := pgx.Identifier{b.Schema, table}.Sanitize(), pgx.Identifier{b.Schema, "hidden"}.Sanitize()
				hide := func() { b.exec(t, `ALTER TABLE `+shown+` RENAME TO hidden`) }
				show := func() { b.exec(t, `ALTER TABLE `+hidden+` RENAME TO `+table) }
				hide()
				require.ErrorContains(t, b.start(t, routes(), inbox.Config{}).ended(t), table+" is missing")
				show()

				r := b.start(t, routes(), inbox.Config{})
				sent := messages(0, 20)
				send(t, b.broker, sent[:10]...)
				r.awaitSettled(t, 10)
				hide()
				poison := messages(100, 1)
				poison[0].Type = "order.refunded"
				send(t, b.broker, append(poison, sent[10:]...)...)
				await(t, "somebody to be told", func() bool { return b.log.has(table, "does not exist") })
				if table == "dead_letters" {
					r.awaitSettled(t, 20) // the others go on
				}
				require.Empty(t, b.effects(t)[poison[0].ID])
				show()
				r.awaitSettled(t, 21)
				r.finish(t)

				b.requireOneEffectEach(t, ids(sent))
				require.Contains(t, b.letters(t), poison[0].ID)
				require.EqualValues(t, 1, r.in.Stats().FailedAttempts, "the poison's own")
				require.Zero(t, b.broker.left(t))
			})
		})
	}
}
