package systemtest_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

var errNowAndThen = errors.New("now and then")

// Messages of one key take effect in the order in which they were sent, through
// failed attempts, messages that end in the dead letters, duplicates, and the
// change from one process to the next. On Kafka the next one comes while the
// first one works, and partitions move. A queue has one consumer at a time, and
// here the next one begins when the first has ended.
func TestOrder_PerKey(t *testing.T) {
	tests := []struct {
		name      string
		kind      string
		place     place
		exclusive bool
		overlap   bool
	}{
		{name: "OnePartition", kind: onKafka, place: place{partitions: 1}, overlap: true},
		{name: "ThreePartitions", kind: onKafka, place: place{partitions: 3}, overlap: true},
		{name: "ExclusiveConsumer", kind: onRabbitMQ, exclusive: true},
		{name: "SingleActiveConsumer", kind: onRabbitMQ, place: place{singleActive: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const keys, each = 12, 150
			b := setup(t, tt.kind, tt.place)
			var sent, good []*handler.Message
			for n := range each {
				for k := range keys {
					msg := &handler.Message{
						ID: fmt.Sprintf("key %d message %d", k, n), Type: "order.paid",
						Key: fmt.Append(nil, "key ", k), Version: int64(n + 1), Payload: []byte(`{}`),
					}
					sent = append(sent, msg)
					if (n+k)%25 == 24 { // dead, and the next of its key goes on
						msg.Headers = handler.Headers{{Name: refuseHeader, Value: []byte("1")}}
					} else {
						good = append(good, msg)
					}
					if (n+k)%10 == 9 {
						sent = append(sent, msg)
					}
				}
			}
			rest := sent[len(sent)/2:]
			send(t, b.broker, sent[:len(sent)/2]...)
			var calls atomic.Int64
			failing := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				if err := childHandler()(ctx, tx, msg); err != nil {
					return err
				}
				if calls.Add(1)%7 == 0 { // after its write
					return errNowAndThen
				}
				return nil
			}
			start := func() *running {
				recipe := b.broker.recipe()
				recipe.Exclusive, recipe.Session = tt.exclusive, 1500*time.Millisecond
				in := b.inbox(t, b.Pool, failing, inbox.Config{QuickAttempts: 100})
				return b.run(t, in, recipe.source(b.log.logger()))
			}

			first := start()
			b.awaitEffects(t, len(good)/4)
			var second *running
			if tt.overlap {
				second = start()
			}
			if tt.place.partitions > 1 {
				await(t, "a partition to move while both have work", func() bool {
					few := min(len(rest), 5)
					send(t, b.broker, rest[:few]...)
					rest = rest[few:]
					return second.passed().settled > 0
				})
			}
			send(t, b.broker, rest...)
			first.finish(t)
			if !tt.overlap {
				second = start()
			}
			b.awaitEffects(t, len(good))
			second.finish(t)
			b.exhaust(t)
			require.NotZero(t, first.in.Stats().FailedAttempts)
			require.NotZero(t, second.in.Stats().FailedAttempts)

			b.requireOneEffectEach(t, ids(good))
			b.requireOrder(t, good)
			require.Len(t, b.letters(t), keys*each-len(good))
		})
	}
}
