package breaker_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
)

// OnChange may call the breaker, also so that it changes again: all is told, in
// order, one at a time.
func TestOnChange_CallsTheBreaker(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var b *breaker.Breaker
		var told []breaker.State
		b = breaker.New("bank", breaker.Config{OnChange: func(from, to breaker.State) {
			if len(told) > 0 {
				require.Equal(t, told[len(told)-1], from)
			}
			told = append(told, to)
			if to == breaker.Open {
				require.ErrorIs(t, b.Cause(), errDown)
				time.Sleep(b.RetryIn() + 1)
				require.NoError(t, b.Do(t.Context(), succeeds))
				require.Equal(t, breaker.Closed, b.State())
			}
		}})
		for range 3 {
			require.ErrorIs(t, b.Do(t.Context(), fails), errDown)
		}
		require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Closed}, told)
	})
}

func TestOnChange_Panics(t *testing.T) {
	t.Parallel()

	var told int
	b := breaker.New("bank", breaker.Config{Failures: 1, OpenFor: time.Nanosecond, OpenMax: time.Nanosecond, OnChange: func(_, _ breaker.State) {
		told++
		panic("told")
	}})
	require.PanicsWithValue(t, "told", func() { _ = b.Do(t.Context(), fails) })
	require.Eventually(t, func() bool { return b.RetryIn() == 0 }, time.Minute, time.Microsecond)
	require.Panics(t, func() { _ = b.Do(t.Context(), succeeds) }, "it is told again")
	require.GreaterOrEqual(t, told, 2)
}

func TestOnChange_ManyAtOnce(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex
	last, changes := breaker.Closed, 0
	b := breaker.New("bank", breaker.Config{
		Failures: 1, OpenFor: time.Nanosecond, OpenMax: time.Nanosecond,
		OnChange: func(from, to breaker.State) {
			require.True(t, mu.TryLock(), "one at a time")
			defer mu.Unlock()
			require.Equal(t, last, from)
			last = to
			changes++
		},
	})
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for n := range 2000 {
				if (n+i)%3 == 0 {
					_ = b.Do(t.Context(), fails)
				} else {
					_ = b.Do(t.Context(), succeeds)
				}
			}
		})
	}
	callers.Wait()
	require.Equal(t, b.State(), last)
	require.Greater(t, changes, 10)
	s := b.Stats()
	require.EqualValues(t, 16*2000, s.Calls+s.Refused)
}

func TestChanged(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		made := time.Now()
		require.Equal(t, made, b.Since())
		require.Equal(t, made, b.ClosedAt())
		changed := b.Changed()
		require.NoError(t, b.Do(t.Context(), succeeds))
		select {
		case <-changed:
			require.Fail(t, "nothing has changed")
		default:
		}
		time.Sleep(time.Minute)
		open(t, b)
		<-changed
		require.Equal(t, made.Add(time.Minute), b.Since())
		require.Equal(t, made, b.ClosedAt(), "it never closed")
		require.NotEqual(t, changed, b.Changed())
	})
}

func TestStats(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		require.NoError(t, b.Do(t.Context(), succeeds))
		open(t, b)
		require.Error(t, b.Do(t.Context(), succeeds))
		time.Sleep(b.RetryIn() + 1)
		require.Error(t, b.Do(t.Context(), fails))
		require.Equal(t, breaker.Stats{
			Name: "bank", State: breaker.Open, Since: b.Since(),
			Calls: 5, Failures: 4, Refused: 1, Trials: 1, Opened: 1, LastError: "*errors.errorString",
		}, b.Stats())
	})
}
