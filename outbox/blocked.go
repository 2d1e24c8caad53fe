package outbox

import (
	"context"
	"fmt"
	"log/slog"
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

// loadBlocks reads what rows say holds aggregates back: of new leases before
// anything of them is sent, of all now and then, since people retry and discard
// events.
func (r *reader) loadBlocks(ctx context.Context) error {
	r.mu.Lock()
	sweep := time.Since(r.blocks) >= sweepEvery
	spans := r.spans(func(l *lease) bool { return !l.leaving && (sweep || !l.loaded) })
	epochs := r.epochs(spans)
	r.mu.Unlock()
	for _, s := range spans {
		if err := r.loadSpan(ctx, s, epochs); err != nil {
			return err
		}
	}
	if sweep {
		r.blocks = time.Now()
	}
	return nil
}

func (r *reader) loadSpan(ctx context.Context, s span, epochs *byLease[int64]) error {
	r.failing.Lock() // what the rows say and what we know of them must not pass each other
	defer r.failing.Unlock()
	limit := r.cfg.MaxBlocked + 1
	rows, err := r.pool.Query(ctx, r.q.blocked, s.lo, s.hi, limit, r.cfg.Quarantine == Hold)
	if err != nil {
		return fmt.Errorf("read what holds events back: %w", err)
	}
	found := make(map[aggregate]*block)
	var (
		a           aggregate
		b           block
		shard       int16
		epoch       int64
		quarantined bool
		seconds     float64
		count       int
	)
	_, err = pgx.ForEachRow(rows, []any{&a.kind, &a.id, &shard, &b.seq, &b.id, &b.attempts, &epoch, &quarantined, &seconds}, func() error {
		count++
		if found[a] != nil {
			return nil
		}
		held := b
		held.lo = leaseOf(shard)
		if epoch != epochs.at(held.lo) {
			held.attempts = 0
		}
		if !quarantined {
			held.due = time.Now().Add(time.Duration(seconds * float64(time.Second)))
		}
		found[a] = &held
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what holds events back: %w", err)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	for a, b := range r.blocked {
		if b.lo < s.lo || b.lo > s.hi || b.passing || b.unsaved || r.inMind[b.seq] != nil {
			delete(found, a)
			continue
		}
		if found[a] == nil && count < limit {
			r.unblockNow(a)
		}
	}
	for a, b := range found {
		r.blocked[a] = b
	}
	for _, l := range r.lanes {
		r.sift(l, time.Now())
	}
	for lo, l := range r.held.all() {
		if lo >= s.lo && lo <= s.hi && l.epoch == epochs.at(lo) {
			l.loaded = true
		}
	}
	return nil
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
	over := len(r.blocked) >= r.cfg.MaxBlocked
	if over && !r.crowded {
		r.cfg.Logger.Error("relay publishes nothing new: too many aggregates are held back by an event that failed; see `semel outbox list -quarantined`",
			slog.String("relay", r.cfg.Name), slog.Int("aggregates", len(r.blocked)), slog.Int("limit", r.cfg.MaxBlocked))
	}
	r.crowded = over
	return over
}
