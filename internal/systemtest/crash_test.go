package systemtest_test

import (
	"context"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// Headers of messages that end the process of a child, and how.
const (
	killHeader   = "kill"    // the handler does
	killIDHeader = "kill-id" // Config.ID does

	byExit  = "exit"
	byStack = "stack" // it overflows
	byMap   = "map"   // concurrent writes, which no recover catches
)

// deadly is a handler that some messages make end the process, after their effect
// is written.
func deadly(next handler.Func) handler.Func {
	return func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if err := next(ctx, tx, msg); err != nil {
			return err
		}
		if how, ok := msg.Headers.First(killHeader); ok {
			die(string(how))
		}
		return nil
	}
}

// askID is a Config.ID that some messages make end the process.
func askID(msg *handler.Message) (string, error) {
	if how, ok := msg.Headers.First(killIDHeader); ok {
		die(string(how))
	}
	return msg.ID, nil
}

func die(how string) {
	switch how {
	case byExit:
		os.Exit(3)
	case byStack:
		debug.SetMaxStack(1 << 20)
		overflow(new(int))
	case byMap:
		m := map[int]int{}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					m[i%8] = i
				}
			})
		}
		wg.Wait()
	}
}

// overflow calls itself until the stack is full.
func overflow(depth *int) {
	if *depth++; *depth > 0 {
		overflow(depth)
	}
}

// outlive starts one child after the other, each when the one before has died,
// until done. It returns how many died, and the one that lives.
func (b *testBundle) outlive(t *testing.T, o order, done func() bool) (deaths int, alive *child) {
	t.Helper()
	c := b.spawnFor(t, o)
	await(t, "done", func() bool {
		select {
		case <-c.ended:
			require.Error(t, c.err, "it ended as if it had been asked to")
			deaths++
			c = b.spawnFor(t, o)
		default:
		}
		return done()
	})
	return deaths, c
}

// Case P1: a message made its process exit, came again to the next one, and so on
// for ever, and those beside it never got anywhere (pg-transactional-outbox;
// DBOS). At the third death it is dead, all others take effect once, and the
// process lives on.
//
// Case Q5: with a prefetch of 50 on a quorum queue with a delivery limit, each
// death counted against all that were prefetched, and the broker gave up
// neighbours of the killer too (rabbitmq-website#2207). Only the killer ends in
// the dead letters.
func TestCrash_MessageKillsTheProcess(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		kind   string
		place  place
		header string
		how    string
	}{
		{name: "KafkaExit", kind: onKafka, place: place{partitions: 2}, header: killHeader, how: byExit},
		{name: "KafkaStackOverflow", kind: onKafka, place: place{partitions: 1}, header: killHeader, how: byStack},
		{name: "KafkaConfigID", kind: onKafka, place: place{partitions: 1}, header: killIDHeader, how: byExit},
		{name: "RabbitMQConcurrentMapWrites", kind: onRabbitMQ, header: killHeader, how: byMap},
		{name: "RabbitMQConfigID", kind: onRabbitMQ, header: killIDHeader, how: byStack},
		{name: "QuorumQueueExit", kind: onRabbitMQ, place: place{deliveryLimit: 4}, header: killHeader, how: byExit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			const n, more, killer = 200, 20, 70
			b := setup(t, tt.kind, tt.place)
			all := messages(0, n+more)
			all[killer].Headers = handler.Headers{{Name: tt.header, Value: []byte(tt.how)}}
			send(t, b.broker, all[:n]...)
			neighbours := append(ids(all[:killer]), ids(all[killer+1:])...)

			o := order{Recipe: b.broker.recipe(), AsksID: tt.header == killIDHeader}
			o.Recipe.Session, o.Recipe.Prefetch = 1500*time.Millisecond, 50
			deaths, alive := b.outlive(t, o, func() bool { return b.count(t) >= n-1 && len(b.allLetters(t)) > 0 })
			require.Equal(t, 3, deaths)

			send(t, b.broker, all[n:]...)
			b.awaitEffects(t, n+more-1)
			alive.finish(t)
			require.Zero(t, b.broker.left(t), "all are acknowledged")
			b.requireOneEffectEach(t, neighbours)
			letters := b.allLetters(t)
			require.Len(t, letters, 1)
			requireReason(t, letters[0], dlq.Crashed, "killed its process")
			require.Equal(t, all[killer].ID, letters[0].Message.ID)
			require.Equal(t, all[killer].Payload, letters[0].Message.Payload)
			surrogate := letters[0].MessageID != dedup.MessageID(all[killer].ID)
			require.Equal(t, o.AsksID, surrogate, "Config.ID is not asked again")
			b.requireEmptyJournal(t)
			if tt.place.deliveryLimit > 0 {
				q := b.broker.(*queue)
				dropped, err := q.channel.QueueDeclarePassive(q.dropped(), true, false, false, false, nil)
				require.NoError(t, err)
				require.Zero(t, dropped.Messages, "given up by the broker")
			}
		})
	}
}

func (b *testBundle) requireEmptyJournal(t *testing.T) {
	t.Helper()
	var n int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM attempt_journal`).Scan(&n))
	require.Zero(t, n, "attempts in the journal that are over")
}
