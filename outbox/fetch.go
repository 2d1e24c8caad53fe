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
	got := reading{more: len(rows) == c.limit}
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
	for size := 0; rows.Next(); {
		e, err := decode(rows)
		if err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
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

// decode makes an event of a row of queries/read.sql.
func decode(rows pgx.Rows) (*event, error) {
	var (
		e                                               event
		m                                               handler.Message
		id                                              pgtype.UUID // read as it is; uuid.UUID goes through text
		shard                                           int16
		version                                         pgtype.Int8
		contentType, correlation, causation, from, tags pgtype.Text
		names                                           []string
		values                                          [][]byte
	)
	columns := [...]any{
		&e.seq, &id, &shard, &e.aggregate.kind, &e.aggregate.id, &m.Type, &version, &m.Payload, &contentType,
		&m.OccurredAt, &correlation, &causation, &from, &names, &values, &tags, &e.attempts,
	}
	for i, value := range rows.RawValues() {
		if value == nil {
			columns[i] = nil // most are, and what is not scanned costs nothing
		}
	}
	if err := rows.Scan(columns[:]...); err != nil {
		return nil, err
	}
	e.id, e.lo = id.Bytes, leaseOf(shard)
	m.ID, m.Key, m.Version = e.id.String(), []byte(e.aggregate.id), version.Int64
	m.CorrelationID, m.CausationID, m.Source, m.ContentType = correlation.String, causation.String, from.String, contentType.String
	m.OccurredAt = m.OccurredAt.UTC()
	stored, names, values, tagText := msgrow.Unmark(names, values, tags.String)
	if e.size = len(m.Payload); stored.Encoded {
		e.stored, e.stored.Bytes = stored, m.Payload
	}
	m.Headers = headersOf(names, values, tagText)
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
