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
	// nothing holds back.
	scanned = 4000

	// maxRead is how many bytes of payloads one read keeps at most, and maxBytes
	// how many a relay has in memory before it reads no more.
	maxRead  = 8 << 20
	maxBytes = 64 << 20

	// quickPoll is the rest after something was found; it doubles up to Poll.
	quickPoll = 25 * time.Millisecond

	// busy is how many events a second, and atOnce how many in one look, are so
	// many that the reader rests for busyPoll, and nobody wakes it before: it finds
	// them in larger batches then, and leaves the database to the writers.
	busy     = 800
	atOnce   = 8
	busyPoll = 50 * time.Millisecond
)

// reader finds events to publish. It belongs to one goroutine.
type reader struct {
	*relayRun
	words    words
	horizon  horizon
	more     bool          // the last look did not come to the horizon
	again    bool          // the last look took nothing, because something may have been missing
	before   []span        // what was read last
	pack     gait          // of the lanes that are read together
	crowded  bool          // too many aggregates are held back
	unknown  bool          // and nobody knows which: there are more than were read
	blocks   time.Time     // when what holds aggregates back was last read whole
	blocksIn time.Duration // until that is read again
	pass     time.Time     // when the reader last began at seq 0 again
	from     int64         // where it was then
	back     bool          // it is there again
	took     time.Duration // how long that took
	idle     time.Duration // the rest before this one
	looked   time.Time     // when the last look ended
	gather   time.Time     // nobody wakes the reader before: more is to come
}

// read reads until ctx ends.
func (r *relayRun) read(ctx context.Context) {
	rd := &reader{relayRun: r, words: words{}}
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
		if r.wait(ctx, rest, true) {
			rd.idle = 0
			r.wait(ctx, time.Until(rd.gather), false)
		}
	}
}

// wait waits for d, until somebody pokes or, if that counts, has written.
func (r *relayRun) wait(ctx context.Context, d time.Duration, wakes bool) (woken bool) {
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	written := r.woken
	if !wakes {
		written = nil
	}
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-r.poke:
	case <-written:
		return true
	}
	return false
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
		r.enqueueHeads(rows, p.epochs)
	}
	if p.hold {
		return p.rest, nil // who makes room pokes
	}
	var found reading
	for _, c := range p.cursors {
		got, err := r.readFrom(ctx, c, p)
		r.arrive(c, p, got, err)
		switch {
		case err != nil:
			return 0, err
		case got.torn:
			r.again = true
			return 0, nil
		}
		found.taken += got.taken
		found.more = found.more || got.more
	}
	return r.pause(p, found), nil
}

// plan is what one look is about.
type plan struct {
	cursors []*cursor
	spans   []span
	epochs  *byLease[int64]
	due     []pgtype.UUID // heads of blocked aggregates
	hold    bool          // read nothing new
	rest    time.Duration // at most, until something is due
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
		if b := r.blocked[a]; b != nil && r.held.at(b.lo) != nil {
			r.held.at(b.lo).loaded = false
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
	due := make(map[aggregate]pgtype.UUID)
	for a, b := range r.blocked {
		switch {
		case b.due.IsZero() || b.unsaved || r.inMind[b.seq] != nil:
		case b.due.After(now):
			until(b.due)
		case b.passing:
			r.unblockNow(a)
		case !r.held.at(b.lo).readable(now): // its next owner tries it
		case r.lanes[a.kind] == nil || !r.lanes[a.kind].waits(now):
			due[a] = b.id
		}
	}
	p.due = r.notOvertaking(due)
	for _, l := range r.lanes {
		if l.waits(now) {
			until(l.until)
		}
	}
	if r.beginsSweep() {
		r.pass, r.from, r.back = now, r.floor, false
		r.floor = 0
	}
	p.spans = r.spans(func(l *lease) bool { return l.readable(now) })
	if r.restart || !slices.Equal(p.spans, r.before) { // how far they are counts for the shards it was reached with
		r.restart, r.before = false, p.spans
		r.goBack(0)
	}
	crowded := r.tooManyBlocked()
	p.hold = crowded || len(r.inMind) >= (len(r.lanes)+3)*r.laneRoom() || r.bytes >= maxBytes
	r.holding = p.hold
	p.epochs = r.epochs(p.spans)
	if !p.hold {
		p.cursors = r.cursors(now)
	}
	return p
}

// beginsSweep reports whether it is time to begin at seq 0 again. Never before
// the reader is back where it was the last time, and not while a lane goes
// alone: behind a long backlog it would come to nothing new.
func (r *reader) beginsSweep() bool {
	return r.back && !r.anyAlone() && time.Since(r.pass) >= max(sweepEvery, sweepShare*r.took)
}

func (r *relayRun) epochs(spans []span) *byLease[int64] {
	epochs := &byLease[int64]{}
	for _, s := range spans {
		for lo := s.lo; lo <= s.hi; lo += shardsOfLease {
			epochs.put(lo, r.held.at(lo).epoch)
		}
	}
	return epochs
}

// pause says how long to rest before the next look.
func (r *reader) pause(p *plan, found reading) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	passing := r.anyAlone()
	if found.more && (found.taken > 0 || !passing) {
		r.idle = 0
		return 0
	}
	now := time.Now()
	r.gather = now
	switch {
	case found.taken >= atOnce && float64(found.taken) > busy*now.Sub(r.looked).Seconds():
		r.idle = min(busyPoll, r.cfg.Poll)
		r.gather = now.Add(r.idle)
	case found.taken > 0:
		r.idle = quickPoll
	default:
		r.idle = min(max(2*r.idle, quickPoll), r.cfg.Poll)
	}
	r.looked = now
	rest := min(r.idle, p.rest)
	if due := r.nextDue(now); passing && !due.IsZero() {
		rest = max(0, min(rest, due.Sub(now)))
	}
	return rest
}
