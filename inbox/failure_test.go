package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// Case P2: the dead letter was written under the context whose end had failed
// the handler, so it was never written (watermill#636).
func TestFailure_DeadLetterOutlivesTheTimeout(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, func(ctx context.Context, _ pgx.Tx, _ *handler.Message) error {
		<-ctx.Done()
		return ctx.Err()
	}, inbox.Config{HandlerTimeout: 20 * time.Millisecond})

	outcome, err := in.Process(t.Context(), message("evt_1"))

	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	letters := b.letters(t)
	require.Len(t, letters, 1)
	require.Equal(t, dlq.Exhausted, letters[0].Reason)
	require.Contains(t, strings.Join(letters[0].Errors, "\n"), "handler timeout after 20ms")
}

// Case P3: all attempts shared one deadline, so those after the first had no
// time at all (watermill#467).
func TestFailure_EachAttemptHasAFreshContext(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var fresh atomic.Int32
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		until, _ := ctx.Deadline()
		if ctx.Err() == nil && time.Until(until) > 0 {
			fresh.Add(1)
		}
		if fresh.Load() < 3 {
			<-ctx.Done()
			return ctx.Err()
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{HandlerTimeout: 500 * time.Millisecond})

	outcome, err := in.Process(t.Context(), message("evt_1"))

	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.EqualValues(t, 3, fresh.Load())
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// Case P9: a panic killed the worker, or its stack was lost; runtime.Goexit (a
// test helper's FailNow in a handler) ended the goroutine that had the message.
func TestFailure_PanicAndGoexit(t *testing.T) {
	t.Parallel()

	type custom struct{ code int }
	var nilError error
	tests := []struct {
		name string
		do   func()
		want string
	}{
		{name: "NilError", do: func() { panic(nilError) }, want: "panic called with nil argument"},
		{name: "Text", do: func() { panic("no stock") }, want: "handler panicked: no stock"},
		{name: "CustomType", do: func() { panic(custom{code: 7}) }, want: "{7}"},
		{name: "RuntimeError", do: func() { var m map[string]int; m["a"] = 1 }, want: "nil map"}, //nolint:staticcheck // what the case is about
		{name: "Goexit", do: runtime.Goexit, want: "runtime.Goexit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			attempts := 0
			in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				attempts++
				if err := effect(ctx, tx, msg); err != nil {
					return err
				}
				if msg.ID == "evt_1" {
					tt.do()
				}
				return nil
			}, inbox.Config{Workers: 1})

			outcome, err := in.Process(t.Context(), message("evt_1"))

			require.NoError(t, err)
			require.Equal(t, handler.Dead, outcome)
			require.Equal(t, 3, attempts)
			require.Zero(t, b.effects(t, "evt_1"))
			letters := b.letters(t)
			require.Len(t, letters, 1)
			told := strings.Join(letters[0].Errors, "\n")
			require.Contains(t, told, tt.want)
			require.Contains(t, told, "failure_test.go", "the stack is kept")

			outcome, err = in.Process(t.Context(), message("evt_2"))
			require.NoError(t, err)
			require.Equal(t, handler.Processed, outcome, "the worker is alive")
		})
	}
}

// A handler that ignores its deadline loses its connection: the attempt has
// failed, its slot and its claim are free, and the goroutine is counted.
func TestFailure_StuckHandler(t *testing.T) {
	t.Parallel()

	b := setup(t)
	release := make(chan struct{})
	var calls atomic.Int32
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if calls.Add(1) == 1 {
			if err := effect(ctx, tx, msg); err != nil {
				return err
			}
			<-release // whatever ctx says
			return effect(context.WithoutCancel(ctx), tx, msg)
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{Workers: 1, HandlerTimeout: 500 * time.Millisecond, WatchdogGrace: 20 * time.Millisecond})

	outcome, err := in.Process(t.Context(), message("evt_1"))

	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome, "the second attempt")
	require.Equal(t, 1, in.Stats().Stuck)
	require.Len(t, b.events.kinds(inbox.Stuck), 1)

	close(release)
	require.Eventually(t, func() bool { return in.Stats().Stuck == 0 }, deadline, tick)
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

func TestFailure_Permanent(t *testing.T) {
	t.Parallel()

	b := setup(t)
	attempts := 0
	taxNumber := errors.New("tax number is invalid")
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		attempts++
		if err := effect(ctx, tx, msg); err != nil {
			return err
		}
		return fmt.Errorf("send invoice: %w", handler.Permanent(taxNumber))
	}, inbox.Config{})
	msg := &handler.Message{
		ID: "evt_1", Type: "invoice", Key: []byte("customer-7"), Version: 3, CorrelationID: "corr-1", CausationID: "cause-1",
		Source: "erp", ContentType: "application/json", OccurredAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Payload: []byte("\x00\xffraw"), Headers: handler.Headers{{Name: "h", Value: nil}, {Name: "h", Value: []byte{0, 255}}},
		Origin: handler.Origin{Transport: "kafka", Topic: "orders", Partition: 3, Offset: 42, Position: "t/3/42"},
	}

	outcome, err := in.Process(t.Context(), msg)

	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	require.Equal(t, 1, attempts, "no further attempt can help")
	require.Zero(t, b.effects(t, "evt_1"))
	letters := b.letters(t)
	require.Len(t, letters, 1)
	letter := letters[0]
	require.Equal(t, "shipping", letter.Consumer)
	require.Equal(t, dlq.Permanent, letter.Reason)
	require.Equal(t, dlq.Open, letter.State)
	require.Equal(t, 1, letter.Attempts)
	require.Contains(t, strings.Join(letter.Errors, "\n"), "tax number is invalid")
	require.WithinDuration(t, time.Now(), letter.LastFailedAt, time.Minute)
	require.Equal(t, msg, letter.Message, "the message as it came")

	deadEvents := b.events.kinds(inbox.DeadLettered)
	require.Len(t, deadEvents, 1)
	require.ErrorIs(t, deadEvents[0].Err, taxNumber)
	require.Equal(t, "permanent", deadEvents[0].Reason)

	outcome, err = in.Process(t.Context(), msg)
	require.NoError(t, err)
	require.Equal(t, handler.Duplicate, outcome, "a dead message is settled: it may be acknowledged")
	require.Len(t, b.letters(t), 1)
}

// A wait that is longer than a quick one is no reason to hold the key up.
func TestFailure_RetryAfterIsStored(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, func(context.Context, pgx.Tx, *handler.Message) error {
		return handler.RetryAfter(time.Hour, errors.New("rate limited"))
	}, inbox.Config{QuickDelay: time.Millisecond, QuickMaxDelay: 30 * time.Millisecond})

	outcome, err := in.Process(t.Context(), message("evt_1"))

	require.NoError(t, err)
	require.Equal(t, handler.Stored, outcome)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM inbox_messages WHERE attempts = 1 AND ready_at BETWEEN now() + interval '59 minutes' AND now() + interval '61 minutes'`))
}

// What a message holds never makes the engine lose or loop it.
func TestFailure_PayloadsAtTheEdges(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		payload []byte
		cfg     inbox.Config
		want    handler.Outcome
		reason  dlq.Reason
	}{
		{name: "Nil", payload: nil, want: handler.Processed},
		{name: "Empty", payload: []byte{}, want: handler.Processed},
		{name: "TenMegabytes", payload: bytes.Repeat([]byte("x"), 10<<20), want: handler.Processed},
		{name: "AtTheLimit", payload: bytes.Repeat([]byte("x"), 16<<20), want: handler.Processed},
		{name: "OverTheLimit", payload: bytes.Repeat([]byte("x"), 16<<20+1), want: handler.Dead, reason: dlq.TooLarge},
		{name: "OverAnOwnLimit", payload: []byte("12345"), cfg: inbox.Config{MaxPayload: 4}, want: handler.Dead, reason: dlq.TooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inbox(t, effect, tt.cfg)
			msg := message("evt_1")
			msg.Payload = tt.payload

			outcome, err := in.Process(t.Context(), msg)

			require.NoError(t, err)
			require.Equal(t, tt.want, outcome)
			if tt.reason != "" {
				letters := b.letters(t)
				require.Len(t, letters, 1)
				require.Equal(t, tt.reason, letters[0].Reason)
				require.True(t, bytes.Equal(tt.payload, letters[0].Message.Payload), "the bytes are intact")
			}
		})
	}
}

func TestFailure_UndecodableAndUnknownType(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, handler.Mux(map[string]handler.Func{
		"order.paid": handler.JSON(func(ctx context.Context, tx pgx.Tx, _ struct{ ID int }, msg *handler.Message) error {
			return effect(ctx, tx, msg)
		}),
	}, nil), inbox.Config{})

	for _, msg := range []*handler.Message{
		{ID: "evt_1", Type: "order.paid", Payload: []byte(`{"id":`)},
		{ID: "evt_2", Type: "order.lost", Payload: []byte(`{"id":1}`)},
		{ID: "evt_3", Type: "order.paid"},
	} {
		outcome, err := in.Process(t.Context(), msg)
		require.NoError(t, err)
		require.Equal(t, handler.Dead, outcome)
	}

	letters := b.letters(t)
	require.Len(t, letters, 3)
	require.Equal(t, dlq.Undecodable, letters[0].Reason)
	require.Equal(t, `{"id":`, string(letters[0].Message.Payload))
	require.Equal(t, dlq.UnknownType, letters[1].Reason)
	require.Equal(t, dlq.Undecodable, letters[2].Reason)
}

func TestProcess_NilMessage(t *testing.T) {
	t.Parallel()

	b := setup(t)
	_, err := b.inbox(t, effect, inbox.Config{}).Process(t.Context(), nil)

	require.ErrorContains(t, err, "message is nil")
}

// A dead letter that the database refuses whatever is left of it (a trigger, a
// domain of somebody's) was written again and again without a pause, by a loop
// that noticed neither its caller's end nor a drain.
func TestFailure_DeadLetterRefusedForGood(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not here' USING ERRCODE = 'data_exception'; END $$`)
	b.exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON dead_letters FOR EACH ROW EXECUTE FUNCTION refuse()`)
	in := b.inbox(t, func(context.Context, pgx.Tx, *handler.Message) error {
		return handler.Permanent(errors.New("no"))
	}, inbox.Config{})

	_, err := in.Process(t.Context(), message("evt_1"))
	require.ErrorIs(t, err, inbox.ErrOutage)

	src := newScripted()
	r := start(t, in, src)
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("evt_2"), nil)))
	require.Eventually(t, func() bool { return in.Stats().FailedAttempts == 2 }, deadline, tick)
	r.stop()
	require.NoError(t, r.wait(t))
	require.Equal(t, inbox.ErrDraining.Error(), src.answer("evt_2"))

	b.exec(t, `DROP TRIGGER refuse ON dead_letters`)
	outcome, err := in.Process(t.Context(), message("evt_2"))
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	require.Len(t, b.letters(t), 1)
}

// A value that the database refuses is the message's fault: what is left of it
// is in front of a person, and the letter says what is missing.
func TestFailure_DeadLetterRefusedInPart(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.header_names IS NOT NULL THEN RAISE 'no headers' USING ERRCODE = 'data_exception'; END IF; RETURN NEW; END $$`)
	b.exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON dead_letters FOR EACH ROW EXECUTE FUNCTION refuse()`)
	in := b.inbox(t, func(context.Context, pgx.Tx, *handler.Message) error {
		return handler.Permanent(errors.New("no"))
	}, inbox.Config{})
	msg := message("evt_1")
	msg.Headers = handler.Headers{{Name: "source", Value: []byte("tests")}}

	outcome, err := in.Process(t.Context(), msg)

	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	letters := b.letters(t)
	require.Len(t, letters, 1)
	require.Equal(t, msg.Payload, letters[0].Message.Payload)
	require.Contains(t, letters[0].Errors[0], "stored without its 1 headers")
}

// A server that protects itself against the wraparound of its transaction ids
// refuses every write with the code of a limit that a message can exceed. That
// is an outage: the messages that met it are healthy.
func TestFailure_ServerThatTakesNoWritesIsAnOutage(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'database is not accepting commands' USING ERRCODE = 'program_limit_exceeded'; END $$`)
	in := b.inbox(t, effect, inbox.Config{})
	src := newScripted()
	r := start(t, in, src)
	b.exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON processed_messages FOR EACH ROW EXECUTE FUNCTION refuse()`)

	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("evt_1"), nil)))
	require.Eventually(t, func() bool { return in.Stats().Paused }, deadline, tick)
	b.exec(t, `DROP TRIGGER refuse ON processed_messages`)

	require.Eventually(t, func() bool { return src.answer("evt_1") == "settled" }, deadline, tick)
	require.Equal(t, 1, b.effects(t, "evt_1"))
	require.Empty(t, b.letters(t))
	require.Zero(t, in.Stats().FailedAttempts)
	r.stop()
	require.NoError(t, r.wait(t))
}
