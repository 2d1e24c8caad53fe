package docs_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/outbox"
)

// What docs/scaling.md says of lost commits. The database is as it was when half of
// the messages were handled, and the broker has them all acknowledged. When it is
// set back, those that were lost are handled and the others are duplicates; events
// whose mark was lost are published again, under their ids.
func TestLostCommits(t *testing.T) {
	t.Parallel()

	database := newDatabase(t)
	p := newPatient(t, database)
	p.exec(t, `CREATE TABLE effects (id text NOT NULL)`)
	p.writes(t, "1", "2")
	messages := make([]*handler.Message, 10)
	for i := range messages {
		messages[i] = &handler.Message{ID: fmt.Sprintf("evt_%d", i), Payload: []byte("{}")}
	}
	handle := func(pool *pgxpool.Pool, msgs []*handler.Message) (outcomes []handler.Outcome) {
		in, err := inbox.New(pool, "shipping", func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
			_, err := tx.Exec(ctx, `INSERT INTO effects VALUES ($1)`, msg.ID)
			return err
		}, inbox.Config{Workers: 1})
		require.NoError(t, err)
		for _, msg := range msgs {
			outcome, err := in.Process(t.Context(), msg)
			require.NoError(t, err)
			outcomes = append(outcomes, outcome)
		}
		return outcomes
	}
	handle(p.pool, messages[:5])
	p.pool.Close()
	restored := copied(t, database)
	lost := newPatient(t, database)
	handle(lost.pool, messages[5:])
	before := published(t, lost, 2)
	lost.pool.Close()

	p = newPatient(t, restored)
	outcomes := handle(p.pool, messages)

	require.Equal(t, []handler.Outcome{
		handler.Duplicate, handler.Duplicate, handler.Duplicate, handler.Duplicate, handler.Duplicate,
		handler.Processed, handler.Processed, handler.Processed, handler.Processed, handler.Processed,
	}, outcomes)
	var effects, distinct int
	require.NoError(t, p.pool.QueryRow(t.Context(), `SELECT count(*), count(DISTINCT id) FROM effects`).Scan(&effects, &distinct))
	require.Equal(t, []int{10, 10}, []int{effects, distinct})
	require.ElementsMatch(t, before, published(t, p, 2))
}

// copied makes another database of what is in one that nobody uses.
func copied(t *testing.T, database string) string {
	t.Helper()
	from, err := url.Parse(database)
	require.NoError(t, err)
	to := *from
	to.Path = from.Path + "_copy"
	conn, err := pgx.Connect(t.Context(), services.Postgres(t))
	require.NoError(t, err)
	name := func(u *url.URL) string { return pgx.Identifier{u.Path[1:]}.Sanitize() }
	_, err = conn.Exec(t.Context(), `CREATE DATABASE `+name(&to)+` TEMPLATE `+name(from))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_, err := conn.Exec(ctx, `DROP DATABASE `+name(&to)+` WITH (FORCE)`)
		require.NoError(t, err)
		require.NoError(t, conn.Close(ctx))
	})
	return to.String()
}

// published returns the ids of the n events that a relay publishes.
func published(t *testing.T, p *patient, n int) (ids []string) {
	t.Helper()
	sent := make(chan string, n)
	relay, err := outbox.NewRelay(p.pool, answering(func(msg *handler.Message) error {
		sent <- msg.ID
		return nil
	}), outbox.RelayConfig{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	defer stop()
	require.Eventually(t, func() bool { return relay.Stats().Kinds["order"].Sent == int64(n) }, time.Minute, 10*time.Millisecond)
	stop()
	require.NoError(t, <-done)
	for range n {
		ids = append(ids, <-sent)
	}
	return ids
}
