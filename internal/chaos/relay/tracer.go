package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// tracer sees the relay's statements: the points at the database.
type tracer struct{ trap *trap }

// traced is a statement on its way.
type traced struct {
	renews, reads bool
	marks         []string // ids
	noted         int64    // how many of them
}

type tracedKey struct{}

// TraceQueryStart implements [pgx.QueryTracer].
func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, tracedKey{}, &traced{
		renews: strings.Contains(data.SQL, "-- Prolongs the leases"),
		reads:  strings.Contains(data.SQL, "WHERE o.seq > $1"),
	})
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (t tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	q, ok := ctx.Value(tracedKey{}).(*traced)
	if !ok || data.Err != nil {
		return
	}
	switch rows := data.CommandTag.RowsAffected(); {
	case q.renews:
		t.trap.pass(wire.MidRenewal)
	case q.reads && rows > 0:
		t.trap.pass(wire.AfterRead)
	}
}

// TraceBatchStart implements [pgx.BatchTracer]: a batch is what notes events.
func (t tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	q := &traced{}
	for _, s := range data.Batch.QueuedQueries {
		if !strings.Contains(s.SQL, "-- Notes what a broker has confirmed") {
			continue
		}
		ids, ok := s.Arguments[0].([]*pgtype.UUID)
		if !ok {
			panic(fmt.Sprintf("the ids of queries/mark.sql are %T: this program must learn them", s.Arguments[0]))
		}
		for _, id := range ids {
			q.marks = append(q.marks, id.String())
		}
		t.trap.pass(wire.BeforeMark)
	}
	return context.WithValue(ctx, tracedKey{}, q)
}

// TraceBatchQuery implements [pgx.BatchTracer].
func (t tracer) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if q, ok := ctx.Value(tracedKey{}).(*traced); ok {
		q.noted = data.CommandTag.RowsAffected() // the last one counts
	}
}

// TraceBatchEnd implements [pgx.BatchTracer].
func (t tracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	q, ok := ctx.Value(tracedKey{}).(*traced)
	switch {
	case !ok || data.Err != nil || q.marks == nil:
	case q.noted == int64(len(q.marks)):
		t.trap.report(wire.Noted, q.marks)
	default:
		t.trap.report(wire.Doubtful, q.marks)
	}
}
