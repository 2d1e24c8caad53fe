package outbox

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
)

// horizonFor is how long the reader may read before it looks up again.
const horizonFor = 100 * time.Millisecond

// horizon is how far the reader may read, and what may still appear behind it.
//
// An event's seq is drawn before its transaction commits. When that has
// happened, the next writer of the same aggregate goes on at once: its event
// stands before the reader, the late one behind it, and must be found first. So
// the reader knows which transactions may have drawn a seq that it has passed,
// and goes back as soon as one of them has ended. It reads nothing that was
// drawn after it looked: such an event may follow a late one that it does not
// know of yet. And it looks again before it takes what it has read: it may have
// seen the second event of a transaction, and not the first.
type horizon struct {
	last    int64            // seq that may be read
	writers map[string]int64 // transactions that may have drawn seqs behind this one
	looked  time.Time
}

// nothing is where to go back to when there is no need.
const nothing = math.MaxInt64

// move takes in that last was drawn, and that no transaction but writers may
// have drawn a seq up to there and not have ended. It returns the seq behind
// which events may have appeared.
func (h *horizon) move(last int64, writers []string) (back int64) {
	back = nothing
	if last < h.last { // a replica that lags was promoted: it draws the same ones again
		back, h.last, h.writers = 0, 0, nil
	}
	running := make(map[string]int64, len(writers))
	for _, w := range writers {
		from, known := h.writers[w]
		switch {
		case strings.HasPrefix(w, "-1/"): // prepared: it had another name before
			from = 0
		case !known:
			from = h.last
		}
		running[w] = from
	}
	for w, from := range h.writers {
		if _, ok := running[w]; !ok {
			back = min(back, from)
		}
	}
	h.last, h.writers = last, running
	return back
}

// straddles reports whether a transaction that has not ended may have drawn
// seqs on both sides of this one.
func (h *horizon) straddles(seq int64) bool {
	for _, from := range h.writers {
		if from < seq {
			return true
		}
	}
	return false
}

// lookUp moves the horizon, if it is time, and sets the cursors back to where
// events may have appeared.
func (r *reader) lookUp(ctx context.Context) error {
	if r.again || (r.more && time.Since(r.horizon.looked) < horizonFor) {
		return nil
	}
	_, err := r.moveHorizon(ctx)
	return err
}

// whole reports whether what was read behind a cursor may be taken. If not, part
// of it may be missing, and the cursors are set back to where.
func (r *reader) whole(ctx context.Context, c *cursor, p *plan) (bool, error) {
	if !r.horizon.straddles(c.floor) {
		return true, nil
	}
	back, err := r.moveHorizon(ctx)
	p.back = min(p.back, back) // what ended just now was perhaps not seen yet
	return back >= c.floor, err
}

func (r *reader) moveHorizon(ctx context.Context) (back int64, err error) {
	looked := time.Now()
	var last int64
	var writers []string
	if err := r.pool.QueryRow(ctx, r.q.horizon, r.cfg.Schema).Scan(&last, &writers); err != nil {
		return nothing, fmt.Errorf("look who writes to the outbox: %w", err)
	}
	r.horizon.looked = looked
	back = r.horizon.move(last, writers)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.goBack(back)
	return back, nil
}
