package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// taken are the batches that were dealt, and when.
type taken struct {
	sizes []int
	at    []time.Duration
}

// takeAll takes what is dealt, each time after a while.
func takeAll(ctx context.Context, p *pace, each time.Duration) (all taken) {
	batches := make(chan int)
	go p.deal(ctx, batches)
	for n := range batches {
		all.sizes, all.at = append(all.sizes, n), append(all.at, time.Since(p.began))
		time.Sleep(each)
	}
	return all
}

func sum(sizes []int) (n int) {
	for _, size := range sizes {
		n += size
	}
	return n
}

// Who keeps up gets full batches as soon as they are, one after the other.
func TestPace_KeepsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPace(3*2000, time.Second, 10)

		got := takeAll(t.Context(), p, 0)

		require.Equal(t, 2000, sum(got.sizes))
		require.Len(t, got.sizes, 200)
		require.Equal(t, 5*time.Millisecond, got.at[0])
		require.Equal(t, time.Second, got.at[199])
		require.Zero(t, p.waiting())
	})
}

// Where few come none waits long for the others.
func TestPace_Lingers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPace(3*200, time.Second, 10)

		got := takeAll(t.Context(), p, 0)

		require.Equal(t, 200, sum(got.sizes))
		require.Equal(t, 3, got.sizes[0], "one comes after 5 ms, two more within 10 ms")
		require.Equal(t, 15*time.Millisecond, got.at[0])
	})
}

// They come whether or not anybody keeps up, and whoever does not is not waited for.
func TestPace_Behind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPace(3*2000, 2*time.Second, 10)

		got := takeAll(t.Context(), p, 10*time.Millisecond) // half as fast as they come

		require.Less(t, got.at[len(got.at)-1], 2*time.Second+overtime+20*time.Millisecond)
		require.Equal(t, 4000, sum(got.sizes), "there was time enough afterwards")

		p = newPace(3*2000, 20*time.Second, 10)
		got = takeAll(t.Context(), p, 10*time.Millisecond)
		require.InDelta(t, 25_000, sum(got.sizes), 20, "and here there was not")
		require.EqualValues(t, 40_000-sum(got.sizes), p.waiting())
	})
}

func TestPace_Stopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()

		got := takeAll(ctx, newPace(3*2000, time.Second, 10), 0)

		require.InDelta(t, 200, sum(got.sizes), 10)
	})
}

// Half of what is booked settles what was paid before, and nothing is settled twice.
func TestTill(t *testing.T) {
	t.Parallel()
	w := &writer{}
	till := till{orders: &w.orders}
	open := map[string]posting{}
	for range 100 {
		postings := till.next(10)
		require.Len(t, postings, 10)
		for _, p := range postings {
			if p.status == paid {
				continue
			}
			before, ok := open[p.order]
			require.True(t, ok, "%+v", p)
			require.Equal(t, before.to, p.from)
			require.Equal(t, before.amount, p.amount)
			require.EqualValues(t, 2, p.sequence)
			delete(open, p.order)
		}
		till.committed(postings)
		for _, p := range postings {
			if p.status == paid {
				require.NotContains(t, open, p.order)
				open[p.order] = p
			}
		}
	}
	require.EqualValues(t, 505, w.orders.Load(), "all of the first batch, and half of all others")
}
