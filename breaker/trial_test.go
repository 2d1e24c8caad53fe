package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
)

// Case P4: a dependency is down for ten minutes while a hundred callers want
// something of it all the time. It sees a trial now and then, one at a time, and is
// used again from the first one that it answers.
func TestTrial_LongOutage(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		const outage = 10 * time.Minute
		began := time.Now()
		var calls, out atomic.Int64
		call := func(context.Context) error {
			calls.Add(1)
			if b.State() != breaker.Closed {
				require.EqualValues(t, 1, out.Add(1), "one at a time")
				defer out.Add(-1)
			}
			time.Sleep(20 * time.Millisecond)
			if time.Since(began) < outage {
				return errDown
			}
			return nil
		}
		open(t, b)
		for range 100 {
			go func() {
				for time.Since(began) < outage+time.Minute {
					_ = b.Do(t.Context(), call)
					time.Sleep(50 * time.Millisecond)
				}
			}()
		}

		time.Sleep(outage)
		synctest.Wait()
		require.LessOrEqual(t, calls.Load(), int64(50))
		require.GreaterOrEqual(t, calls.Load(), int64(20), "every 30 s at least")
		for b.State() != breaker.Closed {
			<-b.Changed()
		}
		require.Less(t, time.Since(began), outage+31*time.Second)
		require.Equal(t, b.Since(), b.ClosedAt())
		require.EqualValues(t, 1, b.Stats().Opened)
		time.Sleep(2 * time.Minute) // until the callers are gone
		synctest.Wait()
		require.Equal(t, breaker.Closed, b.State())
		require.Greater(t, calls.Load(), int64(10_000))
	})
}

func TestTrial_WaitGrowsWithJitter(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		waits := make(map[time.Duration]bool)
		for range 100 {
			open(t, b)
			require.Equal(t, 2*time.Second, b.RetryIn())
			for _, most := range []time.Duration{4, 8, 16, 30, 30, 30} {
				time.Sleep(b.RetryIn() + 1)
				require.Zero(t, b.RetryIn())
				require.Equal(t, breaker.Open, b.State(), "until somebody tries")
				require.ErrorIs(t, b.Do(t.Context(), fails), errDown)
				require.LessOrEqual(t, b.RetryIn(), most*time.Second)
				require.GreaterOrEqual(t, b.RetryIn(), most*time.Second/2)
				waits[b.RetryIn()] = true
			}
			time.Sleep(b.RetryIn() + 1)
			require.NoError(t, b.Do(t.Context(), succeeds))
		}
		require.Greater(t, len(waits), 500, "many services must not try in step")
	})
}

// A trial that never ends must not keep the breaker half-open for ever.
func TestTrial_Hangs(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		open(t, b)
		time.Sleep(b.RetryIn() + 1)
		hung, err := b.Start()
		require.NoError(t, err)
		require.True(t, hung.Trial())
		require.Equal(t, breaker.HalfOpen, b.State())
		require.Equal(t, 2*time.Second, b.RetryIn(), "ask again soon: the trial may end")
		require.ErrorIs(t, b.Do(t.Context(), succeeds), breaker.ErrOpen)

		time.Sleep(29 * time.Second)
		require.Equal(t, time.Second, b.RetryIn())
		changed := b.Changed()
		time.Sleep(time.Second)
		require.Zero(t, b.RetryIn())
		<-changed
		require.Equal(t, "the trial does not end", b.Stats().LastError)
		second, err := b.Start()
		require.NoError(t, err)
		require.True(t, second.Trial())

		require.NoError(t, hung.Done(t.Context(), nil))
		require.Equal(t, breaker.HalfOpen, b.State(), "its late answer says nothing")
		require.ErrorIs(t, b.Do(t.Context(), succeeds), breaker.ErrOpen, "the second one is still out")
		require.NoError(t, second.Done(t.Context(), nil))
		require.Equal(t, breaker.Closed, b.State())
		require.ErrorIs(t, hung.Done(t.Context(), errDown), errDown)
		require.EqualValues(t, 4, b.Stats().Failures, "it counted once")
	})
}

func TestTrial_HangingFunctionIsToldToEnd(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{TrialTimeout: 5 * time.Second})
		open(t, b)
		time.Sleep(b.RetryIn() + 1)
		began := time.Now()
		err := b.Do(t.Context(), hangs)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Same(t, b, breaker.Of(err))
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

// A caller that goes away during its trial has learned nothing: the breaker
// neither closes nor waits again.
func TestTrial_Cancelled(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		open(t, b)
		opened := b.ClosedAt()
		time.Sleep(b.RetryIn() + 1)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error)
			go func() { result <- b.Do(ctx, hangs) }()
			synctest.Wait()
			require.NotZero(t, b.RetryIn())
			changed := b.Changed()
			cancel()
			require.ErrorIs(t, <-result, context.Canceled)
			<-changed
			require.Equal(t, breaker.HalfOpen, b.State())
			require.Zero(t, b.RetryIn(), "the next one may go")
		}
		require.Equal(t, opened, b.ClosedAt())
		require.NoError(t, b.Do(t.Context(), succeeds))
		require.Equal(t, breaker.Closed, b.State())
	})
}

// A call from before the breaker opened ends later: it was an answer of before.
func TestTrial_AnswersFromBefore(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		var before [5]*breaker.Call
		for i := range before {
			call, err := b.Start()
			require.NoError(t, err)
			before[i] = call
		}
		open(t, b)
		require.NoError(t, before[0].Done(t.Context(), nil))
		require.Equal(t, breaker.Open, b.State())

		time.Sleep(b.RetryIn() + 1)
		trial, err := b.Start()
		require.NoError(t, err)
		require.NoError(t, before[1].Done(t.Context(), nil))
		require.Same(t, b, breaker.Of(before[2].Done(t.Context(), errDown)), "it did fail")
		require.Equal(t, breaker.HalfOpen, b.State())
		require.NoError(t, trial.Done(t.Context(), nil))

		late := errors.New("late")
		for _, call := range before[3:] {
			require.ErrorIs(t, call.Done(t.Context(), late), late)
		}
		require.ErrorIs(t, b.Do(t.Context(), fails), errDown)
		require.Equal(t, breaker.Closed, b.State(), "one failure since it closed")
		require.NotErrorIs(t, b.Cause(), late)
	})
}

// What the dependency asked for while it was down is over once it answers.
func TestHoldUntil_AnsweredMeanwhile(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		open(t, b)
		time.Sleep(b.RetryIn() + 1)
		require.NoError(t, b.Do(t.Context(), func(context.Context) error {
			b.HoldUntil(time.Now().Add(time.Minute))
			return nil
		}))
		open(t, b)
		require.Equal(t, 2*time.Second, b.RetryIn())
	})
}

func TestHoldUntil(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		hold time.Duration
		want time.Duration
	}{
		{name: "Longer", hold: time.Minute, want: time.Minute},
		{name: "ShorterThanItWaitsAnyway", hold: time.Second, want: 2 * time.Second},
		{name: "Past", hold: -time.Hour, want: 2 * time.Second},
		{name: "Bounded", hold: 1000 * time.Hour, want: 5 * time.Minute},
	}
	for _, tt := range tests {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/BeforeItOpens=%t", tt.name, first), func(t *testing.T) {
				t.Parallel()

				synctest.Test(t, func(t *testing.T) {
					b := breaker.New("bank", breaker.Config{})
					hold := func() { b.HoldUntil(time.Now().Add(tt.hold)) }
					if first {
						hold()
						require.Zero(t, b.RetryIn(), "it opens nothing")
						require.NoError(t, b.Do(t.Context(), succeeds))
					}
					open(t, b)
					if !first {
						hold()
					}
					b.HoldUntil(time.Now()) // takes nothing back
					require.Equal(t, tt.want, b.RetryIn())
					time.Sleep(tt.want - time.Nanosecond)
					require.ErrorIs(t, b.Do(t.Context(), succeeds), breaker.ErrOpen)
					time.Sleep(2 * time.Nanosecond)
					require.NoError(t, b.Do(t.Context(), succeeds))

					open(t, b)
					require.Equal(t, 2*time.Second, b.RetryIn(), "it was for that time only")
				})
			})
		}
	}
}
