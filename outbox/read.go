package outbox

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/jitter"
)

const (
	// sweepEvery is how often the reader begins again at seq 0: seq is drawn
	// before a transaction commits, so events may appear behind it.
	sweepEvery = 500 * time.Millisecond

	// sweepShare: at most one part in so many of the reader's time goes into that,
	// however many rows it passes that are done with but not vacuumed yet.
	sweepShare = 20

	// scanned is how many events one look passes over at most, to find some that
	// nothing holds back, and lookAhead how many in all while a lane is full.
	scanned   = 1000
	lookAhead = 10_000

	// maxRead is how many bytes of payloads one read keeps at most, and maxBytes
	// how many a relay has in memory before it reads no more.
	maxRead  = 16 << 20
	maxBytes = 64 << 20

	// quickPoll is the rest after something was found; it doubles up to Poll.
	quickPoll = 10 * time.Millisecond
)

// reader finds events to publish. It belongs to one goroutine.
type reader struct {
	*relayRun
	horizon horizon
	more    bool          // the last look did not come to the horizon
	again   bool          // the last look took nothing, because something may have been missing
	before  []span        // what was read last
	sparse  bool          // most of what was read last was held back
	crowded bool          // too many aggregates are held back
	pass    time.Time     // when the reader last began at seq 0 again
	from    int64         // where it was then
	back    bool          // it is there again
	took    time.Duration // how long that took
	idle    time.Duration // the rest before this one
}

// read reads until ctx ends.
func (r *relayRun) read(ctx context.Context) {
	rd := &reader{relayRun: r}
	backoff := jitter.New(50*time.Millisecond, r.cfg.Poll)
	failing := false
	for {
		rest, err := rd.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !failing {
				r.cfg.Logger.ErrorContext(ctx, "relay cannot read the outbox: it goes on by itself when the database answers",
					slog.String("relay", r.cfg.Name), slog.Any("error", err))
			}
			failing, rest = true, backoff.NextBackOff()
		case failing:
			failing = false
			backoff.Reset()
			r.cfg.Logger.InfoContext(ctx, "relay reads the outbox again", slog.String("relay", r.cfg.Name))
		}
		if rest <= 0 {
			continue
		}
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.poke:
		case <-r.woken:
			rd.idle = 0
		}
		timer.Stop()
	}
}

// look reads once, and says how long to rest before the next time.
func (r *reader) look(ctx context.Context) (rest time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.StatementTimeout)
	defer cancel()
	r.finish()
	if err := r.loadBlocks(ctx); err != nil {
		return 0, err
	}
	if err := r.lookUp(ctx); err != nil {
		return 0, err
	}
	r.again = false
	p := r.prepare()
	if len(p.due) > 0 {
		rows, err := r.load(ctx, p.due)
		if err != nil {
			return 0, err
		}
		r.enqueue(rows, p.epochs, true)
	}
	if p.hold {
		return p.rest, nil // who makes room pokes
	}
	var taken, heldBack int
	more := false
	floor := int64(-1)
	for _, s := range p.spans {
		got, err := r.readSpan(ctx, s, p)
		switch {
		case err != nil:
			return 0, err
		case got.torn:
			r.again = true
			return 0, nil
		}
		taken, heldBack = taken+got.taken, heldBack+got.heldBack
		if got.more {
			more = true
			if floor < 0 || got.last < floor {
				floor = got.last
			}
		} else if !more && got.last > p.highest {
			p.highest = got.last
		}
	}
	r.sparse = heldBack >= r.cfg.Batch/2 && heldBack > taken
	return r.advance(p, floor, more, taken), nil
}

// plan is what one look is about.
type plan struct {
	floor   int64
	spans   []span
	epochs  map[int16]int64
	due     []pgtype.UUID // heads of blocked aggregates
	hold    bool          // read nothing new
	limit   int           // how many events to read at most
	rest    time.Duration // at most, until something is due
	highest int64         // seq read
	back    int64         // seq behind which events may have appeared meanwhile
}

// finish forgets what is done, and lets the aggregates go on that waited for it,
// unless another row holds them: that is read next.
func (r *reader) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.forget {
		r.drop(e)
	}
	r.forget = r.forget[:0]
	for _, a := range r.unblock {
		if b := r.blocked[a]; b != nil && r.held[b.lo] != nil {
			r.held[b.lo].loaded = false
		}
		r.unblockNow(a)
	}
	r.unblock = r.unblock[:0]
}

// prepare does what must not happen while rows are on their way: it lets
// aggregates and lanes go on, and begins sweeps.
func (r *reader) prepare() *plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &plan{back: nothing, rest: r.cfg.Poll}
	now := time.Now()
	until := func(t time.Time) { p.rest = max(min(p.rest, t.Sub(now)), time.Millisecond) }
	for a, b := range r.blocked {
		switch {
		case b.due.IsZero() || b.unsaved || r.inMind[b.seq] != nil:
		case b.due.After(now):
			until(b.due)
		case b.passing:
			r.unblockNow(a)
		case r.lanes[a.kind] == nil || !r.lanes[a.kind].waits(now):
			p.due = append(p.due, pgtype.UUID{Bytes: b.id, Valid: true})
		}
	}
	for _, l := range r.lanes {
		switch {
		case l.waits(now):
			until(l.until)
		case l.resume != 0 && len(l.queue) <= r.laneRoom()/2:
			r.floor = min(r.floor, l.resume-1)
			l.resume = 0
		}
	}
	if r.beginsSweep() {
		r.pass, r.from, r.back = now, r.floor, false
		r.floor = 0
	}
	p.spans = r.spans(func(l *lease) bool { return l.loaded && !l.leaving && before(now, l.until) })
	if r.restart || !slices.Equal(p.spans, r.before) { // the floor counts for the shards it was reached with
		r.restart, r.before = false, p.spans
		r.floor = 0
	}
	crowded := r.tooManyBlocked()
	r.back = r.back || crowded // it gets nowhere, and must see what people decide
	p.hold = crowded || len(r.inMind) >= 4*r.laneRoom() || r.bytes >= maxBytes
	r.holding = p.hold
	p.limit = max(r.cfg.Batch, r.laneRoom()-len(r.inMind))
	p.epochs = r.epochs(p.spans)
	p.floor = r.floor
	return p
}

// beginsSweep reports whether it is time to begin at seq 0 again. Never before
// the reader is back where it was the last time: behind a long backlog it would
// come to nothing new.
func (r *reader) beginsSweep() bool {
	return r.back && time.Since(r.pass) >= max(sweepEvery, sweepShare*r.took)
}

func (r *relayRun) epochs(spans []span) map[int16]int64 {
	epochs := make(map[int16]int64)
	for _, s := range spans {
		for lo := s.lo; lo <= s.hi; lo += shardsOfLease {
			epochs[lo] = r.held[lo].epoch
		}
	}
	return epochs
}

// advance moves the floor, and says how long to rest.
func (r *reader) advance(p *plan, floor int64, more bool, taken int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.more = more
	if !more {
		floor = p.highest
	}
	r.floor = min(max(floor, p.floor), p.back)
	if !r.back && (!more || r.floor >= r.from) {
		r.back, r.took = true, time.Since(r.pass)
	}
	resume := int64(0)
	for _, l := range r.lanes {
		if l.resume > 0 && (resume == 0 || l.resume < resume) {
			resume = l.resume
		}
	}
	switch {
	case more && taken > 0, more && resume == 0:
		r.idle = 0
		return 0
	case more && r.floor < resume+lookAhead: // it passes over the events of a lane that is full
		if len(r.lanes) == 1 {
			return min(p.rest, 50*time.Millisecond)
		}
		return min(p.rest, 10*time.Millisecond)
	case more:
		return p.rest
	case taken > 0:
		r.idle = quickPoll
	default:
		r.idle = min(max(2*r.idle, quickPoll), r.cfg.Poll)
	}
	return min(r.idle, p.rest)
}
