package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/handler"
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

// HeaderAttempt is the header that says the how manieth attempt to publish an
// event it is, from the second on. It is no part of the event's identity.
const HeaderAttempt = "publish-attempt"

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

// reading is what reading a span came to.
type reading struct {
	last            int64 // seq
	more            bool  // there may be more behind it
	torn            bool  // something may be missing in it: nothing was taken
	taken, heldBack int
}

func (r *reader) readSpan(ctx context.Context, s span, p *plan) (reading, error) {
	if r.sparse {
		return r.scanSpan(ctx, s, p)
	}
	rows, err := r.query(ctx, r.q.read, p.floor, s.lo, s.hi, p.limit, r.horizon.last)
	if err != nil {
		return reading{}, err
	}
	got := reading{more: len(rows) == p.limit}
	if len(rows) > 0 {
		got.last = rows[len(rows)-1].seq
		got.more = got.more || rows[len(rows)-1].cut
	}
	return r.takeWhole(ctx, rows, p, got)
}

// scanSpan looks at many events without their payloads, and loads those that
// nothing holds back.
func (r *reader) scanSpan(ctx context.Context, s span, p *plan) (reading, error) {
	rows, err := r.pool.Query(ctx, r.q.scan, p.floor, s.lo, s.hi, scanned, r.horizon.last)
	if err != nil {
		return reading{}, fmt.Errorf("read the outbox: %w", err)
	}
	var (
		got   reading
		seq   int64
		id    uuid.UUID
		a     aggregate
		free  []pgtype.UUID
		count int
	)
	_, err = pgx.ForEachRow(rows, []any{&seq, &id, &a.kind, &a.id}, func() error {
		count++
		if len(free) == p.limit { // the rest is for the next time
			got.more = true
			return nil
		}
		got.last = seq
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case r.wanted(seq, a, false):
			free = append(free, pgtype.UUID{Bytes: id, Valid: true})
		case r.inMind[seq] == nil:
			got.heldBack++
		}
		return nil
	})
	if err != nil {
		return reading{}, fmt.Errorf("read the outbox: %w", err)
	}
	got.more = got.more || count == scanned
	if len(free) > 0 {
		events, err := r.load(ctx, free)
		if err != nil {
			return reading{}, err
		}
		if n := len(events); n > 0 && events[n-1].cut { // what it had no room for comes next time
			got.last, got.more = events[n-1].seq, true
		}
		held := got.heldBack
		got, err = r.takeWhole(ctx, events, p, got)
		got.heldBack = held
		return got, err
	}
	return got, nil
}

// takeWhole takes what was read, unless something may be missing in it.
func (r *reader) takeWhole(ctx context.Context, events []*event, p *plan, got reading) (reading, error) {
	if len(events) == 0 {
		return got, nil
	}
	whole, err := r.whole(ctx, p)
	if err != nil || !whole {
		got.torn = true
		return got, err
	}
	got.taken, got.heldBack = r.enqueue(events, p.epochs, false)
	return got, nil
}

func (r *reader) load(ctx context.Context, ids []pgtype.UUID) ([]*event, error) {
	return r.query(ctx, r.q.load, ids)
}

func (r *reader) query(ctx context.Context, sql string, args ...any) ([]*event, error) {
	rows, err := r.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	defer rows.Close()
	var events []*event
	for size := 0; rows.Next(); {
		e, err := decode(rows)
		if err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
		events = append(events, e)
		if size += len(e.msg.Payload); size > maxRead {
			e.cut = true
			return events, nil
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return events, nil
}

// decode makes an event of a row of queries/read.sql.
func decode(rows pgx.Rows) (*event, error) {
	var (
		e                                               event
		m                                               handler.Message
		shard                                           int16
		version                                         pgtype.Int8
		contentType, correlation, causation, from, tags pgtype.Text
		names                                           []string
		values                                          [][]byte
	)
	err := rows.Scan(&e.seq, &e.id, &shard, &e.aggregate.kind, &e.aggregate.id, &m.Type, &version, &m.Payload, &contentType,
		&m.OccurredAt, &correlation, &causation, &from, &names, &values, &tags, &e.attempts)
	if err != nil {
		return nil, err
	}
	e.lo = leaseOf(shard)
	m.ID, m.Key, m.Version = e.id.String(), []byte(e.aggregate.id), version.Int64
	m.CorrelationID, m.CausationID, m.Source, m.ContentType = correlation.String, causation.String, from.String, contentType.String
	m.OccurredAt = m.OccurredAt.UTC()
	m.Headers = headersOf(names, values, tags.String)
	if e.attempts > 0 {
		m.Headers = append(m.Headers, handler.Header{Name: HeaderAttempt, Value: []byte(strconv.Itoa(e.attempts + 1))})
	}
	m.Origin = handler.Origin{Transport: "outbox", Topic: e.aggregate.kind}
	e.msg = &m
	return &e, nil
}

// AggregateType is the aggregate type of a message that a relay publishes: what
// a publisher routes by, kafka.NewPublisher(client).Route(outbox.AggregateType)
// for one.
func AggregateType(msg *handler.Message) string { return msg.Origin.Topic }

// enqueue hands events that were read under these leases to their lanes, and
// counts those that something holds back.
func (r *relayRun) enqueue(events []*event, epochs map[int16]int64, retry bool) (taken, heldBack int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, e := range events {
		e.epoch, e.retry = epochs[e.lo], retry
		if l := r.held[e.lo]; l == nil || l.leaving || !r.may(e, now) {
			r.restart = true // it was passed over, and may be ours again
			continue
		}
		if !r.wanted(e.seq, e.aggregate, retry) {
			if r.inMind[e.seq] == nil {
				heldBack++
			}
			continue
		}
		r.inMind[e.seq] = e
		r.bytes += len(e.msg.Payload)
		r.lane(e.aggregate.kind).queue = append(r.lane(e.aggregate.kind).queue, e)
		taken++
	}
	for _, l := range r.lanes {
		r.startLane(l)
	}
	if r.restart {
		poked(r.poke)
	}
	return taken, heldBack
}

// wanted reports whether an event may go to its lane now. If the lane has no
// room, none of its later events may before the reader has gone back to this
// one. It is called with mu held.
func (r *relayRun) wanted(seq int64, a aggregate, retry bool) bool {
	if r.stopped || r.inMind[seq] != nil {
		return false
	}
	b := r.blocked[a]
	if retry {
		return b != nil && b.seq == seq && !b.unsaved
	}
	if b != nil || r.restart {
		return false
	}
	l := r.lane(a.kind)
	if l.resume == 0 && len(l.queue) < r.laneRoom() && !l.waits(time.Now()) {
		return true
	}
	l.passed(seq)
	return false
}

// drop forgets an event. It is called with mu held.
func (r *relayRun) drop(e *event) {
	delete(r.inMind, e.seq)
	r.bytes -= len(e.msg.Payload)
}
