package dlq

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/schema"
)

// Store is the dead_letters table of one schema. The zero value is the default
// schema, [schema.Default]. It is safe for concurrent use.
type Store struct {
	q     *queries      // nil: the default schema's
	codec handler.Codec // nil: payloads are stored as they are
}

type queries struct {
	schema                                                               string // its name
	add, addMismatch, again, resolve, fail, load, list, count, consumers string
	assign, purgeStart, purge                                            string
}

//go:embed queries/add.sql
var addSQL string

//go:embed queries/add_mismatch.sql
var addMismatchSQL string

//go:embed queries/again.sql
var againSQL string

//go:embed queries/resolve.sql
var resolveSQL string

//go:embed queries/fail.sql
var failSQL string

//go:embed queries/load.sql
var loadSQL string

//go:embed queries/list.sql
var listSQL string

//go:embed queries/count.sql
var countSQL string

//go:embed queries/consumers.sql
var consumersSQL string

//go:embed queries/assign.sql
var assignSQL string

//go:embed queries/purge_start.sql
var purgeStartSQL string

//go:embed queries/purge.sql
var purgeSQL string

var defaultQueries = newQueries(schema.Default)

// NewStore returns the store of another schema than the default.
func NewStore(schemaName string) Store {
	return Store{q: newQueries(schemaName)}
}

// WithCodec returns a store of the same table that stores payloads as codec
// encodes them, and loads what was stored so. What was stored without one is
// loaded as ever.
func (s Store) WithCodec(codec handler.Codec) Store {
	s.codec = codec
	return s
}

func newQueries(schemaName string) *queries {
	if schemaName == "" {
		schemaName = schema.Default
	}
	return &queries{
		schema:      schemaName,
		add:         schema.Qualify(addSQL, schemaName),
		addMismatch: schema.Qualify(addMismatchSQL, schemaName),
		again:       schema.Qualify(againSQL, schemaName),
		resolve:     schema.Qualify(resolveSQL, schemaName),
		fail:        schema.Qualify(failSQL, schemaName),
		load:        schema.Qualify(loadSQL, schemaName),
		list:        schema.Qualify(listSQL, schemaName),
		count:       schema.Qualify(countSQL, schemaName),
		consumers:   schema.Qualify(consumersSQL, schemaName),
		assign:      schema.Qualify(assignSQL, schemaName),
		purgeStart:  schema.Qualify(purgeStartSQL, schemaName),
		purge:       schema.Qualify(purgeSQL, schemaName),
	}
}

func (s Store) queries() *queries {
	if s.q != nil {
		return s.q
	}
	return defaultQueries
}

// querier reads: a pool, a connection and a transaction can.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
