package inbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// A worker froze with a message. When it wakes up, the message has died elsewhere:
// that is for a person to decide, and what a person has decided stands.
func TestWork_WakesUpWithAMessageThatIsDead(t *testing.T) {
	t.Parallel()

	for _, ordering := range []inbox.Ordering{inbox.PerKey, inbox.Strict} {
		for _, replayed := range []bool{false, true} {
			t.Run(map[bool]string{false: "Dead", true: "Replayed"}[replayed]+"/"+ordering.String(), func(t *testing.T) {
				t.Parallel()

				b := setup(t)
				slow := &blocking{release: make(chan struct{})}
				frozen := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
					if msg.ID == "slow" {
						return slow.handle(ctx, tx, msg)
					}
					return effect(ctx, tx, msg)
				}, inbox.Config{Ordering: ordering, Workers: 1, WorkAhead: 2})
				for _, msg := range []*handler.Message{keyed("slow", "other"), keyed("evt_1", "k")} {
					_, err := frozen.Store(t.Context(), msg)
					require.NoError(t, err)
				}
				works(t, frozen)
				require.Eventually(t, func() bool {
					return slow.running.Load() == 1 && b.count(t, `SELECT count(*) FROM inbox_messages WHERE lease_owner IS NULL`) == 0
				}, deadline, tick)

				// Its lease is over, and another worker's handler refuses the message.
				b.exec(t, `UPDATE inbox_messages SET ready_at = clock_timestamp(), lease_owner = gen_random_uuid() WHERE message_text = 'evt_1'`)
				stop := works(t, b.inbox(t, func(context.Context, pgx.Tx, *handler.Message) error {
					return handler.Permanent(errors.New("unknown account"))
				}, inbox.Config{Ordering: ordering}))
				require.Eventually(t, func() bool { return len(b.letters(t)) == 1 }, deadline, tick)
				stop()
				people := inbox.NewStore(b.Schema)
				if replayed {
					require.NoError(t, people.Replay(t.Context(), b.Pool, b.letters(t)[0].ID, "ann"))
				}
				close(slow.release)
				if replayed {
					require.Eventually(t, func() bool { return b.letters(t)[0].State == dlq.Resolved }, deadline, tick)
					require.Equal(t, 1, b.effects(t, "evt_1"))
					return
				}
				require.Eventually(t, func() bool { return frozen.Stats().Running+frozen.Stats().Waiting == 0 && b.effects(t, "slow") == 1 }, deadline, tick)
				require.NoError(t, people.Discard(t.Context(), b.Pool, b.letters(t)[0].ID, "ann"))
				require.Zero(t, b.effects(t, "evt_1"))
			})
		}
	}
}
