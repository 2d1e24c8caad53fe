package breaker_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
)

// takeAll empties a budget and says how much was in it.
func takeAll(b *breaker.Budget) (n int) {
	for b.Take() {
		n++
	}
	return n
}

func TestBudget(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.NewBudget(breaker.BudgetConfig{})
		require.Zero(t, b.RetryIn())
		require.Equal(t, 10, takeAll(b), "what a second brings")
		require.InDelta(t, 100*time.Millisecond, b.RetryIn(), float64(time.Millisecond))
		time.Sleep(b.RetryIn())
		require.Equal(t, 1, takeAll(b))

		for range 100 {
			b.First()
		}
		require.Equal(t, 10, takeAll(b), "a tenth of the first attempts")
		time.Sleep(3 * time.Second)
		require.Equal(t, 30, takeAll(b))
		time.Sleep(time.Hour)
		for range 1000 {
			b.First()
		}
		require.Equal(t, 100, takeAll(b), "and no more are kept")
	})
}

func TestBudget_Off(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.NewBudget(breaker.BudgetConfig{Ratio: -1, PerSecond: -1, Burst: -1})
		b.First()
		time.Sleep(time.Hour)
		require.Zero(t, takeAll(b))
		require.Equal(t, time.Second, b.RetryIn())

		b = breaker.NewBudget(breaker.BudgetConfig{Ratio: 1, PerSecond: -1, Burst: 2})
		require.Zero(t, takeAll(b))
		for range 5 {
			b.First()
		}
		require.Equal(t, 2, takeAll(b))
	})
}

func TestBudget_ManyAtOnce(t *testing.T) {
	t.Parallel()

	b := breaker.NewBudget(breaker.BudgetConfig{Ratio: 0.1, PerSecond: -1, Burst: 1e9})
	var taken atomic.Int64
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 1000 {
				b.First()
				if b.Take() {
					taken.Add(1)
				}
			}
		})
	}
	callers.Wait()
	require.EqualValues(t, 1600, taken.Load()+int64(takeAll(b)))
}
