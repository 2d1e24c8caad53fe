package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// script is a handler that does what its steps say, one for each attempt; then
// the message takes effect.
type script struct {
	steps    []error
	attempts atomic.Int32
}

func (s *script) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	if n := int(s.attempts.Add(1)); n <= len(s.steps) {
		return s.steps[n-1]
	}
	return effect(ctx, tx, msg)
}

// A worker that has put a message off for a moment looks again when that is over,
// and not a second later.
func TestRetry_ShortDelays(t *testing.T) {
	t.Parallel()

	b := setup(t)
	s := &script{steps: make([]error, 40)}
	for i := range s.steps {
		s.steps[i] = errors.New("not yet")
	}
	in := b.inbox(t, s.handle, inbox.Config{Retry: inbox.Retry{Attempts: 100, Delay: time.Millisecond, MaxDelay: 5 * time.Millisecond}})
	works(t, in)
	_, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)

	require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 }, deadline, tick)
}

// age moves all that the inbox knows of the past further back, as if so much time
// had gone by; what waits for a time waits that much less.
func (b *testBundle) age(t *testing.T, by time.Duration) {
	t.Helper()
	b.exec(t, `UPDATE inbox_messages SET stored_at = stored_at - $1::interval, ready_at = ready_at - $1::interval,
		first_failed_at = first_failed_at - $1::interval, last_failed_at = last_failed_at - $1::interval`, by)
}

// delay is how long after its last failure the one message of the inbox is ready.
func (b *testBundle) delay(t *testing.T) time.Duration {
	t.Helper()
	var delay time.Duration
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT ready_at - last_failed_at FROM inbox_messages`).Scan(&delay))
	return delay
}

// Case P5: a Retry-After that was longer than the backoff's maximum was cut to
// that, and a message whose first attempt took longer than 15 minutes was given
// up without a word (backoff#159, #188). It is obeyed from a quick attempt and
// from a worker's, and the time that it asks for is no reason to give up.
func TestRetry_AfterLongerThanTheMaximum(t *testing.T) {
	t.Parallel()

	const asked = 30 * time.Hour // MaxAge is a day
	tests := []struct {
		name   string
		stored bool // the error is a worker's
	}{
		{name: "QuickAttempt"},
		{name: "Worker", stored: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			closed := handler.RetryAfter(asked, errors.New("the bank is closed"))
			h := &script{steps: []error{closed}}
			in := b.inbox(t, h.handle, inbox.Config{Retry: retries})
			accept := in.Process
			if tt.stored {
				accept = in.Store
			}
			outcome, err := accept(t.Context(), message("evt_1"))
			require.NoError(t, err)
			require.Equal(t, handler.Stored, outcome)

			works(t, in)
			require.Eventually(t, func() bool { return b.count(t, `SELECT attempts FROM inbox_messages`) == 1 }, deadline, tick)
			require.InDelta(t, asked, b.delay(t), float64(time.Second))
			_, err = in.Store(t.Context(), message("evt_2"))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return b.effects(t, "evt_2") == 1 }, deadline, tick, "others are handled")
			require.EqualValues(t, 2, h.attempts.Load(), "but not this one, before its time")
			b.age(t, asked)
			require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 && b.inboxRows(t) == 0 }, deadline, tick)
			require.EqualValues(t, 3, h.attempts.Load())
			require.Empty(t, b.letters(t))
		})
	}
}

// Case P5: the first attempt of a message took longer than the time in which a
// schedule of retries had to end, and it was never retried (backoff#159, #188).
// Its age counts from its first failure, whenever that was.
func TestRetry_FirstAttemptLate(t *testing.T) {
	t.Parallel()

	b := setup(t)
	notYet := errors.New("not yet")
	h := &script{steps: []error{notYet, notYet, notYet, notYet}}
	in := b.inbox(t, h.handle, inbox.Config{Retry: inbox.Retry{Attempts: 8, Delay: time.Millisecond, MaxDelay: 20 * time.Millisecond, MaxAge: 15 * time.Minute}})
	_, err := in.Store(t.Context(), message("evt_1"))
	require.NoError(t, err)
	b.age(t, 3*24*time.Hour)

	works(t, in)
	require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 && b.inboxRows(t) == 0 }, deadline, tick)
	require.EqualValues(t, 5, h.attempts.Load())
	require.Empty(t, b.letters(t))
}

// Case P5: the age of a message ended while it waited, and it was given up
// without the attempt that it was promised. Only a failed attempt ends it.
func TestRetry_OnlyAFailedAttemptEndsTheAge(t *testing.T) {
	t.Parallel()
	for _, mended := range []bool{true, false} {
		t.Run(fmt.Sprintf("Mended=%t", mended), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			notYet := errors.New("not yet")
			h := &script{steps: []error{notYet, notYet, notYet}}
			if !mended {
				h.steps = append(h.steps, notYet, notYet)
			}
			in := b.inbox(t, h.handle, inbox.Config{Retry: inbox.Retry{Attempts: 1000, Delay: time.Hour, MaxDelay: 2 * time.Hour, MaxAge: 24 * time.Hour}})
			_, err := in.Process(t.Context(), message("evt_1"))
			require.NoError(t, err)
			b.age(t, 100*time.Hour)

			works(t, in)
			if mended {
				require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 && b.inboxRows(t) == 0 }, deadline, tick)
				require.Empty(t, b.letters(t))
				return
			}
			require.Eventually(t, func() bool { return len(b.letters(t)) == 1 }, deadline, tick)
			letter := b.letters(t)[0]
			require.Equal(t, dlq.Exhausted, letter.Reason)
			require.Equal(t, 4, letter.Attempts)
			require.InDelta(t, 100*time.Hour, letter.LastFailedAt.Sub(letter.FirstFailedAt), float64(time.Minute))
			require.EqualValues(t, 4, h.attempts.Load(), "the attempt was made")
		})
	}
}

// Case P6: 1000 messages failed at once, and came back at once, again and again
// (AWS on backoff and jitter). Retries spread over the whole interval, from a
// source's attempts and from a worker's.
func TestRetry_ManyAtOnceSpread(t *testing.T) {
	t.Parallel()

	const n, bins = 1000, 10
	const interval = 10 * time.Hour
	schedule := inbox.Retry{Attempts: 8, Delay: interval, MaxDelay: interval}
	fail := func(context.Context, pgx.Tx, *handler.Message) error { return errors.New("the shop is down") }
	tests := []struct {
		name string
		fail func(t *testing.T, b *testBundle, in *inbox.Inbox)
	}{
		{name: "Source", fail: func(t *testing.T, _ *testBundle, in *inbox.Inbox) {
			t.Helper()
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					_, err := in.Process(t.Context(), message(fmt.Sprint("evt_", i)))
					require.NoError(t, err)
				})
			}
			wg.Wait()
		}},
		{name: "Worker", fail: func(t *testing.T, b *testBundle, in *inbox.Inbox) {
			t.Helper()
			b.fill(t, n, "0 s")
			works(t, in)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inbox(t, fail, inbox.Config{QuickAttempts: 1, Retry: schedule})
			tt.fail(t, b, in)
			const putOff = `FROM inbox_messages WHERE attempts > 0 AND lease_owner IS NULL`
			require.Eventually(t, func() bool { return b.count(t, `SELECT count(*) `+putOff) == n }, deadline, tick)

			rows, err := b.Pool.Query(t.Context(), `SELECT ready_at - last_failed_at `+putOff)
			require.NoError(t, err)
			delays, err := pgx.CollectRows(rows, pgx.RowTo[time.Duration])
			require.NoError(t, err)
			var held [bins]int
			for _, d := range delays {
				require.LessOrEqual(t, d, interval+time.Second)
				held[min(int(d*bins/interval), bins-1)]++
			}
			for _, in := range held { // 100 each, and 10 more or less: half or twice as many is no chance
				require.Greater(t, in, n/bins/2, "%v", held)
				require.Less(t, in, 2*n/bins, "%v", held)
			}
		})
	}
}

// fill stores n messages as Store does, fill_1 and so on, that are ready after a
// time.
func (b *testBundle) fill(t *testing.T, n int, readyAfter string) {
	t.Helper()
	b.exec(t, `WITH stored AS (
			INSERT INTO inbox_messages (consumer_id, message_id, message_text, message_type, payload, ready_at)
			SELECT 855548666, lpad(to_hex(n), 32, '0')::uuid, 'fill_' || n, 'order.paid', convert_to(repeat('x', 1000), 'UTF8'), clock_timestamp() + $2::interval
			FROM generate_series(1, $1::int) AS n
			RETURNING consumer_id, message_id, message_text
		)
		INSERT INTO processed_messages (consumer_id, message_id, message_text, outcome)
		SELECT consumer_id, message_id, message_text, $3::int FROM stored`, n, readyAfter, int(handler.Stored))
}

// A schedule can differ by error: how many attempts, how long the pause, how old.
func TestRetryOf(t *testing.T) {
	t.Parallel()

	errBusy, errBroken, errSlow, errOther := errors.New("busy"), errors.New("broken"), errors.New("slow"), errors.New("other")
	schedule := inbox.Retry{Attempts: 5, Delay: time.Hour, MaxDelay: time.Hour, MaxAge: 24 * time.Hour}
	tests := []struct {
		name      string
		err       error
		age       time.Duration // goes by before it is tried again
		dead      int           // after how many attempts
		wantDelay time.Duration // the most
	}{
		{name: "AsInRetry", err: errOther, age: 2 * time.Hour, dead: 5, wantDelay: time.Hour},
		{name: "Attempts", err: errBroken, age: 2 * time.Hour, dead: 2, wantDelay: time.Hour},
		{name: "Delay", err: fmt.Errorf("wrapped: %w", errBusy), age: 4 * 24 * time.Hour, dead: 2, wantDelay: 3 * 24 * time.Hour},
		{name: "MaxAge", err: errSlow, age: 90 * time.Minute, dead: 3, wantDelay: time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inbox(t, func(context.Context, pgx.Tx, *handler.Message) error { return tt.err }, inbox.Config{
				QuickAttempts: 1, Retry: schedule,
				RetryOf: func(err error) inbox.Retry {
					switch {
					case errors.Is(err, errBroken):
						return inbox.Retry{Attempts: 2}
					case errors.Is(err, errBusy):
						return inbox.Retry{Delay: 3 * 24 * time.Hour} // above MaxDelay, which it lifts
					case errors.Is(err, errSlow):
						return inbox.Retry{MaxAge: 2 * time.Hour}
					default:
						return inbox.Retry{}
					}
				},
			})
			_, err := in.Process(t.Context(), message("evt_1"))
			require.NoError(t, err)
			works(t, in)
			for attempt := 1; attempt < tt.dead; attempt++ {
				require.Eventually(t, func() bool {
					return b.count(t, `SELECT count(*) FROM inbox_messages WHERE attempts = $1 AND lease_owner IS NULL`, attempt) == 1
				}, deadline, tick)
				require.Empty(t, b.letters(t))
				require.LessOrEqual(t, b.delay(t), tt.wantDelay+time.Second)
				b.age(t, tt.age)
			}
			require.Eventually(t, func() bool { return len(b.letters(t)) == 1 }, deadline, tick)
			require.Equal(t, tt.dead, b.letters(t)[0].Attempts)
		})
	}
}
