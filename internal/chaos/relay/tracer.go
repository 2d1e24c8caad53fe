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
}

type tracedKey struct{}

// TraceQueryStart implements [pgx.QueryTracer].
func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	q := &traced{
		renews: strings.Contains(data.SQL, "-- Prolongs the leases"),
		reads:  strings.Contains(data.SQL, "WHERE o.seq > $1"),
	}
	if strings.Contains(data.SQL, "-- Notes what a broker has confirmed") {
		ids, ok := data.Args[0].([]pgtype.UUID)
		if !ok {
			panic(fmt.Sprintf("the ids of queries/mark.sql are %T: this program must learn them", data.Args[0]))
		}
		for _, id := range ids {
			q.marks = append(q.marks, id.String())
		}
		t.trap.pass(wire.BeforeMark)
	}
	return context.WithValue(ctx, tracedKey{}, q)
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
	case q.marks != nil && rows == int64(len(q.marks)):
		t.trap.report(wire.Noted, q.marks)
	case q.marks != nil:
		t.trap.report(wire.Doubtful, q.marks)
	}
}
