package outbox

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/msgrow"
)

// HeaderAttempt is the header that says the how manieth attempt to publish an
// event it is, from the second on. It is no part of the event's identity.
const HeaderAttempt = "publish-attempt"

// reading is what reading came to.
type reading struct {
	last            int64 // seq; of several spans, up to where all were read
	more            bool  // there may be more behind it
	torn            bool  // something may be missing in it: nothing was taken
	cut             bool  // it had no room for more
	taken, heldBack int
}

// readSpan reads on from a cursor in a run of shards.
func (r *reader) readSpan(ctx context.Context, c *cursor, s span, p *plan) (reading, error) {
	if c.gait.sparse {
		return r.scanSpan(ctx, c, s, p)
	}
	rows, err := r.query(ctx, r.q.read, c.floor, s.lo, s.hi, c.limit, r.horizon.last)
	if err != nil {
		return reading{}, err
	}
	got := reading{more: len(rows) == c.limit, cut: r.learn(c, rows)}
	if len(rows) > 0 {
		got.last = rows[len(rows)-1].seq
		got.more = got.more || rows[len(rows)-1].cut
	}
	return r.takeWhole(ctx, c, rows, p, got)
}

// scanSpan looks at many events without their payloads, and loads those that
// nothing holds back.
func (r *reader) scanSpan(ctx context.Context, c *cursor, s span, p *plan) (reading, error) {
	rows, err := r.pool.Query(ctx, r.q.scan, c.floor, s.lo, s.hi, scanned, r.horizon.last)
	if err != nil {
		return reading{}, fmt.Errorf("read the outbox: %w", err)
	}
	var (
		got   reading
		seq   int64
		id    pgtype.UUID
		a     aggregate
		free  []pgtype.UUID
		count int
	)
	_, err = pgx.ForEachRow(rows, []any{&seq, &id, &a.kind, &a.id}, func() error {
		count++
		if len(free) == c.limit { // the rest is for the next time
			got.more = true
			return nil
		}
		got.last = seq
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case r.wanted(seq, a, c.lane):
			free = append(free, id)
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
		r.learn(c, events)
		if n := len(events); n > 0 && events[n-1].cut { // what it had no room for comes next time
			got.last, got.more = events[n-1].seq, true
		}
		held := got.heldBack
		got, err = r.takeWhole(ctx, c, events, p, got)
		got.heldBack = held
		return got, err
	}
	return got, nil
}

// takeWhole takes what was read, unless something may be missing in it.
func (r *reader) takeWhole(ctx context.Context, c *cursor, events []*event, p *plan, got reading) (reading, error) {
	if len(events) == 0 {
		return got, nil
	}
	whole, err := r.whole(ctx, c, p)
	if err != nil || !whole {
		got.torn = true
		return got, err
	}
	got.taken, got.heldBack = r.enqueue(events, p.epochs, c.lane)
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
	var row eventRow
	for size := 0; rows.Next(); {
		if err := row.scan(rows); err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
		e := row.event(rows.RawValues(), r.words)
		events = append(events, e)
		if size += e.size; size > maxRead {
			e.cut = true
			return events, nil
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return events, nil
}

// eventRow takes the columns of queries/read.sql. It serves one row after the other:
// what an event keeps is its own.
type eventRow struct {
	id       pgtype.UUID // read as it is; uuid.UUID goes through text
	seq      int64
	version  int64
	shard    int16
	attempts int
	payload  []byte
	occurred pgtype.Timestamptz
	names    msgrow.Names
	values   [][]byte
	targets  [17]any
}

// The columns of queries/read.sql that are text: they are taken as they came.
const (
	kindColumn        = 3
	aggregateColumn   = 4
	typeColumn        = 5
	contentTypeColumn = 8
	correlationColumn = 10
	causationColumn   = 11
	sourceColumn      = 12
	tagsColumn        = 15
)

// scan takes a row. Most columns of most rows are NULL, and what is not scanned
// costs nothing.
func (f *eventRow) scan(rows pgx.Rows) error {
	*f = eventRow{targets: [...]any{
		&f.seq, &f.id, &f.shard, nil, nil, nil, &f.version, &f.payload, nil,
		&f.occurred, nil, nil, nil, &f.names, &f.values, nil, &f.attempts,
	}}
	for i, value := range rows.RawValues() {
		if value == nil {
			f.targets[i] = nil
		}
	}
	return rows.Scan(f.targets[:]...)
}

// event makes an event of the row.
func (f *eventRow) event(text [][]byte, words words) *event {
	e := &event{seq: f.seq, id: f.id, lo: leaseOf(f.shard), attempts: f.attempts, size: len(f.payload)}
	for _, value := range f.values {
		e.size += len(value)
	}
	e.aggregate = aggregate{words.text(text[kindColumn]), string(text[aggregateColumn])}
	stored, names, values, tags := msgrow.Unmark(f.names, f.values, string(text[tagsColumn]))
	if stored.Encoded {
		e.stored, e.stored.Bytes = stored, f.payload
	}
	e.own = handler.Message{
		ID:            e.id.String(),
		Type:          words.text(text[typeColumn]),
		Key:           []byte(e.aggregate.id),
		Version:       f.version,
		CorrelationID: string(text[correlationColumn]),
		CausationID:   string(text[causationColumn]),
		Source:        words.text(text[sourceColumn]),
		ContentType:   words.text(text[contentTypeColumn]),
		OccurredAt:    msgrow.UTC(f.occurred),
		Payload:       f.payload,
		Headers:       headersOf(names, values, tags),
		Origin:        handler.Origin{Transport: "outbox", Topic: e.aggregate.kind},
	}
	if e.attempts > 0 {
		e.own.Headers = append(e.own.Headers, handler.Header{Name: HeaderAttempt, Value: []byte(strconv.Itoa(e.attempts + 1))})
	}
	e.msg = &e.own
	return e
}

// words are texts that come again and again, each kept once.
type words map[string]string

// maxWords and maxWord, in bytes, bound them: somebody may have a type for each event,
// or a very long one.
const (
	maxWords = 1000
	maxWord  = 255
)

func (w words) text(raw []byte) string {
	if len(raw) > maxWord {
		return string(raw)
	}
	word, ok := w[string(raw)]
	if !ok {
		if len(w) >= maxWords {
			clear(w)
		}
		word = string(raw)
		w[word] = word
	}
	return word
}

// AggregateType is the aggregate type of a message that a relay publishes: what
// a publisher routes by, kafka.NewPublisher(client).Route(outbox.AggregateType)
// for one.
func AggregateType(msg *handler.Message) string { return msg.Origin.Topic }
