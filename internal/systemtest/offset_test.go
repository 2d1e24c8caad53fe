package systemtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// Case K2: records up to 99 were done while 50 still failed, the offset of the
// highest was committed, and a restart lost 50 (franz-go#128, #1055).
func TestOffset_StaysAtTheLowestInFlight(t *testing.T) {
	const total, failing = 100, 50
	b := setup(t, onKafka, place{partitions: 1})
	topic := b.broker.(*topic)
	sent := messages(0, total)
	send(t, topic, sent...)
	mended := make(chan struct{})
	r := b.start(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if msg.ID == sent[failing].ID {
			select {
			case <-mended:
			default:
				return errors.New("not yet")
			}
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{QuickAttempts: 1_000_000})
	r.awaitSettled(t, total-1)
	await(t, "a commit", func() bool { return topic.committed(t)[0] >= failing })
	failed := r.in.Stats().FailedAttempts
	await(t, "many more attempts", func() bool { return r.in.Stats().FailedAttempts > failed+50 }) // longer than a commit interval
	require.EqualValues(t, failing, topic.committed(t)[0])

	close(mended)
	r.awaitSettled(t, total)
	r.finish(t)

	require.EqualValues(t, total, topic.committed(t)[0])
	b.requireOneEffectEach(t, ids(sent))
}
