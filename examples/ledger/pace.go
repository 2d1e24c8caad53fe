package main

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// linger is how long a posting waits at most for others to be booked with.
	linger = 10 * time.Millisecond

	// overtime is how long after the last one has come postings are booked. What is
	// left then never is.
	overtime = 5 * time.Second
)

// pace is when postings come: one after the other, evenly, whether or not anybody
// keeps up. Make one with [newPace].
type pace struct {
	every time.Duration
	total int64
	batch int64
	began time.Time

	taken atomic.Int64
}

// newPace lets the postings of a rate of events come for a time, from now on.
func newPace(rate int, length time.Duration, batch int) *pace {
	every := time.Second * eventsOfPosting / time.Duration(rate)
	return &pace{every: every, total: int64(length / every), batch: int64(batch), began: time.Now()}
}

// at is when the n-th posting comes.
func (p *pace) at(n int64) time.Time { return p.began.Add(time.Duration(n) * p.every) }

// come is how many postings have come.
func (p *pace) come(now time.Time) int64 {
	return max(0, min(p.total, int64(now.Sub(p.began)/p.every)))
}

// waiting is how many postings have come and nobody has taken.
func (p *pace) waiting() int64 { return p.come(time.Now()) - p.taken.Load() }

// deal deals the postings out in batches, by their number, until all are or the time
// is over. It closes batches then.
func (p *pace) deal(ctx context.Context, batches chan<- int) {
	defer close(batches)
	end := time.NewTimer(time.Until(p.at(p.total).Add(overtime)))
	defer end.Stop()
	for taken := int64(0); taken < p.total; {
		full, first := p.at(min(taken+p.batch, p.total)), p.at(taken+1)
		ready := time.NewTimer(min(time.Until(full), time.Until(first.Add(linger))))
		select {
		case <-ready.C:
		case <-ctx.Done():
			return
		}
		n := min(p.batch, p.come(time.Now())-taken)
		if n <= 0 {
			continue
		}
		select {
		case batches <- int(n):
			taken += n
			p.taken.Store(taken)
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
