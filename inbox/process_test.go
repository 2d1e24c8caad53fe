package inbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// Case D1: a store that recorded the message before the work took the
// redelivery after a failure for a duplicate, and the message was lost
// (watermill Deduplicator; postel#129).
func TestProcess_FailedThenRedelivered(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	first := true
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if err := effect(ctx, tx, msg); err != nil {
			return err
		}
		if first {
			first = false
			cancel() // the consumer goes away in the middle
			return errors.New("interrupted")
		}
		return nil
	}, inbox.Config{})

	_, err := in.Process(ctx, message("evt_1"))
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, b.effects(t, "evt_1"))

	outcome, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.Equal(t, 1, b.effects(t, "evt_1"))
	require.Empty(t, b.letters(t))
}

// Case D2: a hash of the payload as identity took two different messages with
// equal bodies for one (watermill Deduplicator).
func TestProcess_EqualPayloadsAreTwoMessages(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{})

	for _, id := range []string{"evt_1", "evt_2"} {
		outcome, err := in.Process(t.Context(), message(id))
		require.NoError(t, err)
		require.Equal(t, handler.Processed, outcome)
	}
	require.Equal(t, 2, b.count(t, `SELECT count(*) FROM effects`))
}

// Case D3: the writes of failed attempts stayed, because the message's
// transaction was not the handler's (watermill-sql default schema).
func TestProcess_NothingOfAFailedAttemptStays(t *testing.T) {
	t.Parallel()

	b := setup(t)
	attempts := 0
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		attempts++
		if err := effect(ctx, tx, msg); err != nil {
			return err
		}
		if attempts < 3 {
			return errors.New("stock service said no")
		}
		return nil
	}, inbox.Config{})

	outcome, err := in.Process(t.Context(), message("evt_1"))

	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.Equal(t, 3, attempts)
	require.Equal(t, 1, b.effects(t, "evt_1"))
	require.Equal(t, int64(2), in.Stats().FailedAttempts)
}

// Case D4: after a failed statement the transaction refuses everything
// (25P02), and consumers that retried inside it never came out of that
// (watermill-sql; apache/camel#9286).
func TestProcess_HandlerGoesOnAfterFailedStatement(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		sql  string
	}{
		{name: "UniqueViolation", sql: `INSERT INTO balances VALUES (1, 0)`},
		{name: "DivisionByZero", sql: `SELECT 1/0`},
		{name: "Syntax", sql: `SELEC`},
	}
	for _, tt := range tests {
		for _, swallow := range []bool{false, true} {
			name := tt.name + "Returned"
			if swallow {
				name = tt.name + "Swallowed"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()

				b := setup(t)
				attempts := 0
				in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
					attempts++
					var err error
					if attempts < 3 {
						_, err = tx.Exec(ctx, tt.sql)
						if swallow {
							err = nil
						}
					}
					if effectErr := effect(ctx, tx, msg); err == nil && !swallow {
						err = effectErr
					}
					return err
				}, inbox.Config{})

				outcome, err := in.Process(t.Context(), message("evt_1"))

				require.NoError(t, err)
				require.Equal(t, handler.Processed, outcome)
				require.Equal(t, 3, attempts, "each attempt had a transaction of its own")
				require.Equal(t, 1, b.effects(t, "evt_1"))
			})
		}
	}
}

// A handler that leaves its transaction unusable has failed, and the dead
// letter says what it did.
func TestProcess_UnusableTransaction(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		h    handler.Func
		want string
	}{
		{name: "SwallowedError", want: "a statement in it failed", h: func(ctx context.Context, tx pgx.Tx, _ *handler.Message) error {
			_, _ = tx.Exec(ctx, `SELECT 1/0`)
			return nil
		}},
		{name: "RowsLeftOpen", want: "close its rows", h: func(ctx context.Context, tx pgx.Tx, _ *handler.Message) error {
			rows, err := tx.Query(ctx, `SELECT generate_series(1, 100000)`)
			if err != nil {
				return err
			}
			rows.Next()
			return nil
		}},
		{name: "RolledBackBehindOurBack", want: "ended by the handler", h: func(ctx context.Context, tx pgx.Tx, _ *handler.Message) error {
			_, err := tx.Conn().Exec(ctx, "rollback")
			return err
		}},
		{name: "CommitCalled", want: "do not call Commit", h: func(ctx context.Context, tx pgx.Tx, _ *handler.Message) error {
			return tx.Commit(ctx)
		}},
		{name: "RollbackCalled", want: "do not call Rollback", h: func(ctx context.Context, tx pgx.Tx, _ *handler.Message) error {
			return tx.Rollback(ctx)
		}},
		{name: "ConnectionClosed", want: "connection is closed", h: func(ctx context.Context, tx pgx.Tx, _ *handler.Message) error {
			return tx.Conn().Close(ctx)
		}},
		{name: "DeferredConstraint", want: "commit", h: func(ctx context.Context, tx pgx.Tx, _ *handler.Message) error {
			_, err := tx.Exec(ctx, `INSERT INTO deferred VALUES (1), (1)`)
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.exec(t, `CREATE TABLE deferred (id int, CONSTRAINT deferred_id_key UNIQUE (id) DEFERRABLE INITIALLY DEFERRED)`)
			in := b.inbox(t, tt.h, inbox.Config{})

			outcome, err := in.Process(t.Context(), message("evt_1"))

			require.NoError(t, err)
			require.Equal(t, handler.Dead, outcome)
			letters := b.letters(t)
			require.Len(t, letters, 1)
			require.Equal(t, dlq.Exhausted, letters[0].Reason)
			require.Equal(t, 3, letters[0].Attempts)
			require.Contains(t, strings.Join(letters[0].Errors, "\n"), tt.want)

			outcome, err = b.inboxOn(t, b.Pool, "other", effect, inbox.Config{}).Process(t.Context(), message("evt_2"))
			require.NoError(t, err, "the pool still works")
			require.Equal(t, handler.Processed, outcome)
		})
	}
}

// A savepoint keeps the transaction whole past a statement that may fail.
func TestProcess_Savepoint(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		_ = pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error {
			_, err := nested.Exec(ctx, `SELECT 1/0`)
			return err
		})
		return effect(ctx, tx, msg)
	}, inbox.Config{})

	outcome, err := in.Process(t.Context(), message("evt_1"))

	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// Case D12: an id that came back with another payload was taken for a
// duplicate, and a second payment vanished
// (powertools-lambda-typescript#1502).
func TestProcess_SameIDOtherPayload(t *testing.T) {
	t.Parallel()

	other := func() *handler.Message {
		msg := message("evt_1")
		msg.Payload = []byte(`{"id":2}`)
		return msg
	}

	t.Run("AfterTheFirst", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		in := b.inbox(t, effect, inbox.Config{})
		_, err := in.Process(t.Context(), message("evt_1"))
		require.NoError(t, err)

		for range 3 {
			outcome, err := in.Process(t.Context(), other())
			require.NoError(t, err)
			require.Equal(t, handler.Mismatch, outcome)
		}

		letters := b.letters(t)
		require.Len(t, letters, 1, "one dead letter for each payload")
		require.Equal(t, dlq.Mismatch, letters[0].Reason)
		require.EqualValues(t, 3, letters[0].Count)
		require.Equal(t, `{"id":2}`, string(letters[0].Message.Payload))
		require.Equal(t, 1, b.effects(t, "evt_1"))
		require.Equal(t, 1, b.count(t, `SELECT count(*) FROM `+pgx.Identifier{b.Schema}.Sanitize()+`.processed_messages WHERE outcome = 1`),
			"the row of the first is left alone")
	})

	t.Run("WhileTheFirstRuns", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		running, release := make(chan struct{}), make(chan struct{})
		in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
			close(running)
			<-release
			return effect(ctx, tx, msg)
		}, inbox.Config{})
		var wg sync.WaitGroup
		wg.Go(func() {
			outcome, err := in.Process(t.Context(), message("evt_1"))
			require.NoError(t, err)
			require.Equal(t, handler.Processed, outcome)
		})
		<-running
		wg.Go(func() {
			outcome, err := in.Process(t.Context(), other())
			require.NoError(t, err)
			require.Equal(t, handler.Mismatch, outcome)
		})
		require.Eventually(t, func() bool { return in.Stats().Waiting == 1 }, deadline, tick)
		close(release)
		wg.Wait()
		require.Len(t, b.letters(t), 1)
	})

	t.Run("PolicySkip", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		in := b.inbox(t, effect, inbox.Config{Mismatch: inbox.MismatchSkip})
		_, err := in.Process(t.Context(), message("evt_1"))
		require.NoError(t, err)

		outcome, err := in.Process(t.Context(), other())

		require.NoError(t, err)
		require.Equal(t, handler.Mismatch, outcome)
		require.Empty(t, b.letters(t))
		require.Equal(t, int64(1), in.Stats().Mismatches)
	})

	t.Run("StablePartChosenByTheUser", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		in := b.inbox(t, effect, inbox.Config{
			Fingerprint: func(msg *handler.Message) []byte { return []byte(msg.Type) },
		})
		_, err := in.Process(t.Context(), message("evt_1"))
		require.NoError(t, err)

		outcome, err := in.Process(t.Context(), other())

		require.NoError(t, err)
		require.Equal(t, handler.Duplicate, outcome)
	})

	t.Run("Off", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		in := b.inbox(t, effect, inbox.Config{Fingerprint: func(*handler.Message) []byte { return nil }})
		_, err := in.Process(t.Context(), message("evt_1"))
		require.NoError(t, err)

		outcome, err := in.Process(t.Context(), other())

		require.NoError(t, err)
		require.Equal(t, handler.Duplicate, outcome)
	})
}

// Case D13: two subscribers shared one record of ids, and the second one never
// saw the message (zuksmaq/messaging; efureev/go-outbox).
func TestProcess_TwoConsumers(t *testing.T) {
	t.Parallel()

	b := setup(t)
	for _, consumer := range []string{"shipping", "invoicing"} {
		outcome, err := b.inboxOn(t, b.Pool, consumer, effect, inbox.Config{}).Process(t.Context(), message("evt_1"))
		require.NoError(t, err)
		require.Equal(t, handler.Processed, outcome)
	}
	require.Equal(t, 2, b.effects(t, "evt_1"))
}

// Messages of one key run one after another, in the order received, also past
// a failure; other keys are not held up.
func TestProcess_OrderOfAKey(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var ran []string
	var mu sync.Mutex
	firstFailed, release := make(chan struct{}), make(chan struct{})
	var failedOnce atomic.Bool
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if msg.ID == "a1" && !failedOnce.Swap(true) {
			close(firstFailed)
			<-release
			return errors.New("not yet")
		}
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, msg.ID)
		return effect(ctx, tx, msg)
	}, inbox.Config{})

	var wg sync.WaitGroup
	process := func(id, key string) {
		outcome, err := in.Process(t.Context(), &handler.Message{ID: id, Key: []byte(key)})
		require.NoError(t, err)
		require.Equal(t, handler.Processed, outcome)
	}
	wg.Go(func() { process("a1", "a") })
	<-firstFailed
	wg.Go(func() { process("a2", "a") })
	require.Eventually(t, func() bool { return in.Stats().Waiting == 1 }, deadline, tick)
	process("b1", "b") // finishes while a1 and a2 wait
	close(release)
	wg.Wait()

	require.Equal(t, []string{"b1", "a1", "a2"}, ran)
}

// A panic in an observer left the claim's connection behind, out of the pool
// and in its transaction; in a Run it ended the process.
func TestProcess_ObserverPanics(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{
		Observer: inbox.ObserverFunc(func(_ context.Context, e inbox.Event) { panic(e.Kind.String()) }),
	})

	outcome, err := in.Process(t.Context(), message("evt_1"))

	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.Zero(t, b.Pool.Stat().AcquiredConns())
}
