package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// A relay owns ranges of four shards by lease. The database's clock says when
// one runs out; the relay itself stops sending an attempt's time before.
const (
	shards        = 256
	shardsOfLease = 4
	leases        = shards / shardsOfLease
)

// lease is a range of shards that is ours.
type lease struct {
	epoch   int64
	until   time.Time // send nothing after that
	leaving bool      // it belongs to another one's share: finish, and let go
	loaded  bool      // what holds its aggregates back is known
}

// readable reports whether events under the lease are read now, and sent. There may
// be no lease.
func (l *lease) readable(now time.Time) bool {
	return l != nil && l.loaded && !l.leaving && before(now, l.until)
}

// leaseOf is the first shard of a shard's range.
func leaseOf(shard int16) int16 { return shard - shard%shardsOfLease }

// before reports whether now is before t by the monotonic clock and by the wall
// clock: a machine that was suspended shows it only in the one, one whose clock
// was set only in the other.
func before(now, t time.Time) bool {
	return now.Before(t) && now.Round(0).Before(t.Round(0))
}

// heartbeat is how often a relay looks at who else is alive.
func (c RelayConfig) heartbeat() time.Duration { return min(c.Lease/6, time.Second) }

// keepLeases keeps what is ours and takes what falls to us until the relay
// ends.
func (r *relayRun) keepLeases(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var renewed time.Time
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-r.tick:
		}
		renew := time.Since(renewed) >= r.cfg.Lease/3
		began := time.Now()
		// A statement that is broken off may still take leases, and after we have given
		// all back: it comes to its end first.
		err := r.share(r.work, renew)
		switch {
		case err == nil && renew:
			renewed = began
		case err != nil && ctx.Err() == nil && !failing:
			r.cfg.Logger.ErrorContext(ctx, "relay cannot hold its shards: it stops when its lease runs out, and goes on by itself",
				slog.String("relay", r.cfg.Name), slog.Any("error", err))
		case err == nil && failing:
			r.cfg.Logger.InfoContext(ctx, "relay holds its shards again", slog.String("relay", r.cfg.Name))
		}
		failing = err != nil
		timer.Reset(r.cfg.heartbeat())
	}
}

// share brings what we own in line with our share among the relays that live.
func (r *relayRun) share(ctx context.Context, renew bool) error {
	ctx, cancel := context.WithTimeout(ctx, min(r.cfg.StatementTimeout, r.cfg.Lease/3))
	defer cancel()
	if renew {
		if err := r.renew(ctx); err != nil {
			return err
		}
	}
	rows, err := r.pool.Query(ctx, r.q.members)
	if err != nil {
		return fmt.Errorf("look for other relays: %w", err)
	}
	members, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	if err != nil {
		return fmt.Errorf("look for other relays: %w", err)
	}
	rank := slices.Index(members, [16]byte(r.id))
	if rank < 0 { // somebody's clock, or a long pause: say again that we live
		rank, members = len(members), append(members, r.id)
	}
	mine := shareOf(rank, len(members))
	if err := r.letGo(ctx, mine); err != nil {
		return err
	}
	return r.take(ctx, mine)
}

// shareOf is which leases fall to the relay of a rank: as many as to any other,
// give or take one, side by side.
func shareOf(rank, members int) []int16 {
	var mine []int16
	for i := rank * leases / members; i < (rank+1)*leases/members; i++ {
		mine = append(mine, int16(i*shardsOfLease)) //nolint:gosec // below 256
	}
	return mine
}

func (r *relayRun) renew(ctx context.Context) error {
	if _, err := r.pool.Exec(ctx, r.q.announce, r.id, r.cfg.Name, r.cfg.Lease); err != nil {
		return fmt.Errorf("say that the relay is alive: %w", err)
	}
	if _, err := r.pool.Exec(ctx, r.q.bury); err != nil {
		return fmt.Errorf("forget dead relays: %w", err)
	}
	sent := time.Now()
	held, err := r.leases(ctx, r.q.renew, r.id, r.cfg.Lease)
	if err != nil {
		return fmt.Errorf("prolong leases: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for lo, own := range r.held.all() {
		if epoch, ok := held[lo]; !ok || epoch != own.epoch {
			r.lose(lo)
		}
	}
	until := sent.Add(r.cfg.Lease - r.cfg.AttemptTimeout)
	busy := r.busy()
	for lo, epoch := range held {
		if own := r.held.at(lo); own != nil {
			own.until = until
		} else if !busy[lo] { // taken by a statement whose answer was lost
			r.hold(lo, &lease{epoch: epoch, until: until})
		}
	}
	poked(r.poke)
	return nil
}

// lose gives up a lease that is another's by now. What is on its way is noted
// in vain: its epoch has passed.
func (r *relayRun) lose(lo int16) {
	r.held.put(lo, nil)
	r.forgetBlocks(lo)
	r.counters.leasesLost.Add(1)
	r.cfg.Logger.Warn("relay lost shards to another one: it was too slow to prolong its lease",
		slog.String("relay", r.cfg.Name), slog.Int("first_shard", int(lo)))
}

// letGo gives back the leases that fall to others, once nothing of them is on
// its way.
func (r *relayRun) letGo(ctx context.Context, mine []int16) error {
	r.mu.Lock()
	leaving := false
	for lo, l := range r.held.all() {
		if !slices.Contains(mine, lo) {
			l.leaving, l.loaded = true, false
		}
		leaving = leaving || l.leaving
	}
	var idle []int16
	var epochs []int64
	if leaving {
		busy := r.busy()
		for lo, l := range r.held.all() {
			if l.leaving && !busy[lo] { // also one that is ours again: it may be given back already, and we not know
				idle, epochs = append(idle, lo), append(epochs, l.epoch)
			}
		}
	}
	r.mu.Unlock()
	if len(idle) == 0 {
		return nil
	}
	// Nothing can come to be on its way: what leaves is not read any more.
	if _, err := r.pool.Exec(ctx, r.q.release, r.id, idle, epochs); err != nil {
		return fmt.Errorf("give leases back: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, lo := range idle {
		r.held.put(lo, nil)
		r.forgetBlocks(lo)
	}
	return nil
}

// busy says of which leases something is on its way. It is called with mu held.
func (r *relayRun) busy() map[int16]bool {
	busy := make(map[int16]bool)
	for _, e := range r.inMind {
		busy[e.lo] = true
	}
	return busy
}

// take takes those of mine that nobody holds.
func (r *relayRun) take(ctx context.Context, mine []int16) error {
	r.mu.Lock()
	wanted := slices.DeleteFunc(slices.Clone(mine), func(lo int16) bool { return r.held.at(lo) != nil })
	if len(wanted) > 0 {
		busy := r.busy()
		wanted = slices.DeleteFunc(wanted, func(lo int16) bool { return busy[lo] })
	}
	r.mu.Unlock()
	if len(wanted) == 0 {
		return nil
	}
	sent := time.Now()
	taken, err := r.leases(ctx, r.q.acquire, r.id, r.cfg.Lease, wanted)
	if err != nil {
		return fmt.Errorf("take leases: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for lo, epoch := range taken {
		r.hold(lo, &lease{epoch: epoch, until: sent.Add(r.cfg.Lease - r.cfg.AttemptTimeout)})
	}
	if len(taken) > 0 {
		poked(r.poke)
	}
	return nil
}

// hold adds a lease to what is ours. It is read from the start, even if it was
// ours a moment ago: what was known of it then is forgotten. It is called with mu
// held.
func (r *relayRun) hold(lo int16, l *lease) {
	r.forgetBlocks(lo)
	r.held.put(lo, l)
	r.restart = true
}

// leases runs a statement that returns leases, as epochs by first shard.
func (r *relayRun) leases(ctx context.Context, sql string, args ...any) (map[int16]int64, error) {
	rows, err := r.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	got := make(map[int16]int64)
	var lo int16
	var epoch int64
	_, err = pgx.ForEachRow(rows, []any{&lo, &epoch}, func() error {
		if lo >= 0 && lo < shards && lo == leaseOf(lo) { // any other was made by hand, and has no shards
			got[lo] = epoch
		}
		return nil
	})
	return got, err
}

// leave gives everything back. Errors are left to the lease's end.
func (r *relayRun) leave() {
	ctx, cancel := context.WithTimeout(r.work, r.cfg.StatementTimeout)
	defer cancel()
	r.mu.Lock()
	r.held = byLease[*lease]{}
	r.mu.Unlock()
	if _, err := r.pool.Exec(ctx, r.q.leave, r.id); err != nil {
		r.cfg.Logger.Warn("relay could not give its shards back: others take them when its lease runs out",
			slog.String("relay", r.cfg.Name), slog.Any("error", err))
	}
}

// may reports whether e may be sent now. It is called with mu held.
func (r *relayRun) may(e *event, now time.Time) bool {
	l := r.held.at(e.lo)
	return l != nil && l.epoch == e.epoch && before(now, l.until)
}

// span is a run of leases side by side, as shards.
type span struct{ lo, hi int16 }

// spans are the shards to read, joined where they touch. It is called with mu
// held.
func (r *relayRun) spans(of func(*lease) bool) []span {
	var spans []span
	for lo := int16(0); lo < shards; lo += shardsOfLease {
		l := r.held.at(lo)
		if l == nil || !of(l) {
			continue
		}
		hi := lo + shardsOfLease - 1
		if n := len(spans); n > 0 && spans[n-1].hi+1 == lo {
			spans[n-1].hi = hi
			continue
		}
		spans = append(spans, span{lo, hi})
	}
	return spans
}
