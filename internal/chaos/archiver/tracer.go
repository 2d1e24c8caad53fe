package main

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// tracer sees the statements of a purge: the points at the database.
type tracer struct{ trap *trap }

type tracedKey struct{}

// TraceQueryStart implements [pgx.QueryTracer].
func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	for begins, point := range map[string]wire.Point{
		"-- Commits what is in a batch":                         wire.BatchCommitted,
		"-- Notes that the object of a batch was read back":     wire.Verified,
		"-- Deletes rows that are in the archive, each only as": wire.MidDelete,
	} {
		if strings.HasPrefix(data.SQL, begins) {
			return context.WithValue(ctx, tracedKey{}, point)
		}
	}
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (t tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if point, ok := ctx.Value(tracedKey{}).(wire.Point); ok && data.Err == nil && data.CommandTag.RowsAffected() > 0 {
		t.trap.pass(point)
	}
}
