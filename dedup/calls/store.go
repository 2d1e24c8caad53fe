package calls

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/schema"
)

//go:embed queries/list.sql
var listSQL string

//go:embed queries/load.sql
var loadSQL string

//go:embed queries/count.sql
var countSQL string

//go:embed queries/resolve.sql
var resolveSQL string

// querier is a pool, a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Store is the ledger as people look at it and decide on it. The zero value is that
// of the default schema, [schema.Default]. It is safe for concurrent use.
type Store struct {
	q     *storeQueries // nil: the default schema's
	codec handler.Codec // nil: results are read and written as they are
}

type storeQueries struct{ list, load, count, resolve string }

var defaultStoreQueries = newStoreQueries(schema.Default)

func newStoreQueries(schemaName string) *storeQueries {
	return &storeQueries{
		list:    schema.Qualify(listSQL, schemaName),
		load:    schema.Qualify(loadSQL, schemaName),
		count:   schema.Qualify(countSQL, schemaName),
		resolve: schema.Qualify(resolveSQL, schemaName),
	}
}

// NewStore returns the store of another schema than the default.
func NewStore(schemaName string) Store { return Store{q: newStoreQueries(schemaName)} }

// WithCodec returns a store that reads and writes results through codec, the one
// that the ledger has.
func (s Store) WithCodec(codec handler.Codec) Store {
	s.codec = codec
	return s
}

func (s Store) queries() *storeQueries {
	if s.q != nil {
		return s.q
	}
	return defaultStoreQueries
}
