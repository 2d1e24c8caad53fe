package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// block keeps the events of one aggregate back.
type block struct {
	lo       int16 // the lease of the aggregate
	seq      int64 // of the event that blocks it
	id       pgtype.UUID
	attempts int       // that failed under this lease
	due      time.Time // when it may go on; zero while a person must decide
	passing  bool      // the broker was away: no row says so
	unsaved  bool      // the row is still to be written
}

// maxHeld is how many rows are read at most to find the aggregates that a run of
// shards has held back. One may have many rows that wait: somebody parked them.
const maxHeld = 100_000

// loadBlocks reads what rows say holds aggregates back: of new leases before
// anything of them is sent, of all now and then, since people retry and discard
// events.
func (r *reader) loadBlocks(ctx context.Context) error {
	began := time.Now()
	r.mu.Lock()
	sweep := began.Sub(r.blocks) >= r.blocksIn
	spans := r.spans(func(l *lease) bool { return !l.leaving && (sweep || !l.loaded) })
	epochs := r.epochs(spans)
	r.mu.Unlock()
	unknown := false
	for _, s := range spans {
		all, err := r.loadSpan(ctx, s, epochs)
		if err != nil {
			return err
		}
		unknown = unknown || !all
	}
	if sweep {
		r.blocks = time.Now()
		r.blocksIn = max(sweepEvery, 4*r.blocks.Sub(began))
		r.unknown = false
	}
	r.unknown = r.unknown || unknown
	return nil
}

// loadSpan reports whether it knows of all aggregates in a run of shards that are held
// back.
func (r *reader) loadSpan(ctx context.Context, s span, epochs *byLease[int64]) (all bool, err error) {
	r.failing.Lock() // what the rows say and what we know of them must not pass each other
	defer r.failing.Unlock()
	found := make(map[aggregate]*block)
	after := place{shard: -1}
	for read := 0; !all && read < maxHeld && len(found) < r.cfg.MaxBlocked; {
		count, err := r.loadHeld(ctx, s, epochs, &after, found)
		if err != nil {
			return false, fmt.Errorf("read what holds events back: %w", err)
		}
		all = count < r.heldPage()
		read += count
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	for a, b := range r.blocked {
		if b.lo < s.lo || b.lo > s.hi || b.passing || b.unsaved || r.inMind[b.seq] != nil {
			delete(found, a)
			continue
		}
		if found[a] == nil && all {
			r.unblockNow(a)
		}
	}
	for a, b := range found {
		if l := r.held.at(b.lo); l != nil && l.epoch == epochs.at(b.lo) { // it may have gone meanwhile
			r.blocked[a] = b
		}
	}
	for _, l := range r.lanes {
		r.sift(l, time.Now())
	}
	for lo, l := range r.held.all() {
		if lo >= s.lo && lo <= s.hi && l.epoch == epochs.at(lo) {
			l.loaded = true
		}
	}
	return all, nil
}

// place is one in the order of shards, and of events within each.
type place struct {
	shard int16
	seq   int64
}

// heldPage is how many rows are read at once.
func (r *reader) heldPage() int { return r.cfg.MaxBlocked + 1 }

// loadHeld reads the next page of rows that hold aggregates back, and counts them. The
// first one of an aggregate is what holds it.
func (r *reader) loadHeld(ctx context.Context, s span, epochs *byLease[int64], after *place, found map[aggregate]*block) (count int, err error) {
	rows, err := r.pool.Query(ctx, r.q.blocked, s.lo, s.hi, r.heldPage(), r.cfg.Quarantine == Hold, after.shard, after.seq)
	if err != nil {
		return 0, err
	}
	var (
		a           aggregate
		b           block
		epoch       int64
		quarantined bool
		seconds     float64
	)
	_, err = pgx.ForEachRow(rows, []any{&a.kind, &a.id, &after.shard, &b.seq, &b.id, &b.attempts, &epoch, &quarantined, &seconds}, func() error {
		count++
		after.seq = b.seq
		if found[a] != nil {
			return nil
		}
		held := b
		held.lo = leaseOf(after.shard)
		held.attempts = max(held.attempts, 0)
		if epoch != epochs.at(held.lo) {
			held.attempts = 0
		}
		if !quarantined {
			held.due = time.Now().Add(time.Duration(seconds * float64(time.Second)))
		}
		found[a] = &held
		return nil
	})
	return count, err
}

// holds reports whether an event is held back: what was written before the one that
// blocks its aggregate is not. It is called with mu held.
func (r *relayRun) holds(a aggregate, seq int64) bool {
	b := r.blocked[a]
	return b != nil && seq >= b.seq
}

// unblockNow lets an aggregate go on: the reader must find again what it passed
// over. Only the reader calls it, with mu held, between two reads: else it could
// take a later event of the aggregate before an earlier one.
func (r *relayRun) unblockNow(a aggregate) {
	if b := r.blocked[a]; b != nil {
		if l := r.lanes[a.kind]; l != nil && l.alone() {
			l.passed(b.seq)
		} else {
			r.floor = min(r.floor, b.seq-1)
		}
	}
	delete(r.blocked, a)
}

// notOvertaking is the heads before which nothing of their aggregate is on its way:
// somebody may have parked an event behind others. It is called with mu held.
func (r *relayRun) notOvertaking(due map[aggregate]pgtype.UUID) []pgtype.UUID {
	if len(due) == 0 {
		return nil
	}
	for _, e := range r.inMind {
		if b := r.blocked[e.aggregate]; b != nil && e.seq < b.seq {
			delete(due, e.aggregate)
		}
	}
	return slices.Collect(maps.Values(due))
}

// forgetBlocks forgets what was known of a lease that is no longer ours, or was
// not until now. It is called with mu held.
func (r *relayRun) forgetBlocks(lo int16) {
	for a, b := range r.blocked {
		if b.lo == lo {
			delete(r.blocked, a)
		}
	}
}

// tooManyBlocked reports whether no new events are read, and says so once. It
// is called with mu held.
func (r *reader) tooManyBlocked() bool {
	over := r.unknown || len(r.blocked) >= r.cfg.MaxBlocked
	if over && !r.crowded {
		r.cfg.Logger.Error("relay publishes nothing new: too many aggregates are held back by an event that failed; see `semel outbox list -quarantined`",
			slog.String("relay", r.cfg.Name), slog.Int("aggregates", len(r.blocked)), slog.Int("limit", r.cfg.MaxBlocked))
	}
	r.crowded = over
	return over
}
