package inbox_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// dies is the handler of a message that is dead until something is mended.
func dies(mended *atomic.Bool) handler.Func {
	return func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if !mended.Load() {
			return handler.Permanent(errors.New("unknown account"))
		}
		return effect(ctx, tx, msg)
	}
}

// Somebody has put a NULL into the errors of a dead letter. People see it, and its
// message is handled again as any other.
func TestReplay_ErrorsByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var mended atomic.Bool
	in := b.inbox(t, dies(&mended), inbox.Config{Ordering: inbox.Strict})
	outcome, err := in.Process(t.Context(), keyed("evt_1", "k"))
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	b.exec(t, `UPDATE dead_letters SET errors = '{NULL}'`)
	mended.Store(true)
	people := inbox.NewStore(b.Schema)

	records, err := people.List(t.Context(), b.Pool, inbox.Filter{})
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.Equal(t, []string{""}, records[0].Errors)
	require.NoError(t, people.Replay(t.Context(), b.Pool, b.letters(t)[0].ID, "ann"))
	works(t, in)
	require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 }, deadline, tick)
	require.Equal(t, dlq.Resolved, b.letters(t)[0].State)
}

// Somebody has changed more than rows: a column of the dead letters may be NULL now,
// and is. What waits for such a letter is left alone; it is no outage.
func TestWork_LetterThatCannotBeScanned(t *testing.T) {
	t.Parallel()

	b := setup(t)
	log := &lines{}
	var mended atomic.Bool
	in := b.inbox(t, dies(&mended), inbox.Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	_, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	mended.Store(true)
	require.NoError(t, inbox.NewStore(b.Schema).Replay(t.Context(), b.Pool, b.letters(t)[0].ID, "ann"))
	b.exec(t, `ALTER TABLE dead_letters ALTER COLUMN count DROP NOT NULL`)
	b.exec(t, `UPDATE dead_letters SET count = NULL`)

	works(t, in)

	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM inbox_messages WHERE lease_owner IS NULL AND cardinality(errors) > 0
			AND ready_at > clock_timestamp() + interval '5 minutes'`) == 1
	}, deadline, tick, "it is not looked at all the time")
	require.Equal(t, 1, log.count("is left alone: a person must decide"))
	records, err := inbox.NewStore(b.Schema).List(t.Context(), b.Pool, inbox.Filter{})
	require.NoError(t, err)
	require.Contains(t, strings.Join(records[0].Errors, " "), "the message cannot be read")
}
