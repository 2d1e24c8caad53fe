package outbox

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/schema"
)

// Store is the outbox of one schema for the people who look after it: they see
// what waits and why, decide on what the relay gave up on, and purge what is
// published. The zero value is the default schema, [schema.Default]. It is safe
// for concurrent use.
type Store struct {
	q     *storeQueries // nil: the default schema's
	codec handler.Codec // nil: payloads are loaded as they are stored
}

type storeQueries struct {
	schema                                  string // its name
	kinds, relays, unowned, size            string
	listPending, listHeld, list, loadRecord string
	retry, discard                          string
	purgeTurn, purgeStart, purge            string
	archiveFind, archiveLoad, archiveDelete string
	archiveAny                              string
	archiveOpen, archiveBegin, archiveFill  string
	archiveVerified, archiveGiveUp          string
	archiveDone, archiveRestore             string
	archiveUnknown                          string
	maxCounted                              int   // bounds a status
	maxObject                               int64 // bounds an object of the archive
}

var (
	//go:embed queries/kinds.sql
	kindsSQL string
	//go:embed queries/relays.sql
	relaysSQL string
	//go:embed queries/unowned.sql
	unownedSQL string
	//go:embed queries/size.sql
	sizeSQL string
	//go:embed queries/list_pending.sql
	listPendingSQL string
	//go:embed queries/list_held.sql
	listHeldSQL string
	//go:embed queries/list.sql
	listSQL string
	//go:embed queries/load_record.sql
	loadRecordSQL string
	//go:embed queries/retry.sql
	retrySQL string
	//go:embed queries/discard.sql
	discardSQL string
	//go:embed queries/purge_turn.sql
	purgeTurnSQL string
	//go:embed queries/purge_start.sql
	purgeStartSQL string
	//go:embed queries/purge.sql
	purgeSQL string
	//go:embed queries/archive_find.sql
	archiveFindSQL string
	//go:embed queries/archive_load.sql
	archiveLoadSQL string
	//go:embed queries/archive_delete.sql
	archiveDeleteSQL string
	//go:embed queries/archive_any.sql
	archiveAnySQL string
	//go:embed queries/archive_open.sql
	archiveOpenSQL string
	//go:embed queries/archive_begin.sql
	archiveBeginSQL string
	//go:embed queries/archive_fill.sql
	archiveFillSQL string
	//go:embed queries/archive_verified.sql
	archiveVerifiedSQL string
	//go:embed queries/archive_give_up.sql
	archiveGiveUpSQL string
	//go:embed queries/archive_done.sql
	archiveDoneSQL string
	//go:embed queries/archive_restore.sql
	archiveRestoreSQL string
	//go:embed queries/archive_unknown.sql
	archiveUnknownSQL string
)

var defaultStoreQueries = newStoreQueries(schema.Default)

// NewStore returns the store of another schema than the default.
func NewStore(schemaName string) Store {
	return Store{q: newStoreQueries(schemaName)}
}

// WithCodec returns a store of the same table that loads payloads as they were
// before codec encoded them.
func (s Store) WithCodec(codec handler.Codec) Store {
	s.codec = codec
	return s
}

func newStoreQueries(schemaName string) *storeQueries {
	if schemaName == "" {
		schemaName = schema.Default
	}
	q := func(sql string) string { return schema.Qualify(sql, schemaName) }
	return &storeQueries{
		schema: schemaName,
		kinds:  q(kindsSQL), relays: q(relaysSQL), unowned: q(unownedSQL), size: q(sizeSQL),
		listPending: q(listPendingSQL), listHeld: q(listHeldSQL), list: q(listSQL), loadRecord: q(loadRecordSQL),
		retry: q(retrySQL), discard: q(discardSQL),
		purgeTurn: q(purgeTurnSQL), purgeStart: q(purgeStartSQL), purge: q(purgeSQL),
		archiveFind: q(archiveFindSQL), archiveLoad: q(archiveLoadSQL), archiveDelete: q(archiveDeleteSQL),
		archiveAny: q(archiveAnySQL), archiveOpen: q(archiveOpenSQL), archiveBegin: q(archiveBeginSQL), archiveFill: q(archiveFillSQL),
		archiveVerified: q(archiveVerifiedSQL), archiveGiveUp: q(archiveGiveUpSQL),
		archiveDone: q(archiveDoneSQL), archiveRestore: q(archiveRestoreSQL), archiveUnknown: q(archiveUnknownSQL),
		maxCounted: maxCounted, maxObject: maxObject,
	}
}

func (s Store) queries() *storeQueries {
	if s.q != nil {
		return s.q
	}
	return defaultStoreQueries
}

// querier asks: a pool, a connection and a transaction can.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
