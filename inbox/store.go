package inbox

import (
	_ "embed"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/schema"
)

// Store is the inbox of all consumers in one schema, as a person looks at it and
// decides about it. It needs no handler. The zero value is the default schema,
// [schema.Default]. It is safe for concurrent use.
type Store struct {
	t     *tables       // nil: the default schema's
	codec handler.Codec // nil: payloads are loaded as they are stored
}

// tables is what the operator's part and the engine have in common.
type tables struct {
	rows    queries
	claims  dedup.Store
	letters dlq.Store
}

// queries are the statements on the inbox and the journal.
type queries struct {
	lock, behind, store, take, nextDue, renew, release, retry, pardon, putBehind, remove, removePlace, goOn, park, resumeStuck, resumeBehind string

	journaled, journalBegin, journalEnd, journalForget, journalPurge, isFull, ends, storeAtOnce, lockMany, unparkSettled string

	decideLetter, enqueue, isWaiting string

	waiting, status, list, content, countBefore, runNow, replayed string // for people
}

//go:embed queries/lock.sql
var lockSQL string

//go:embed queries/behind.sql
var behindSQL string

//go:embed queries/store.sql
var storeSQL string

//go:embed queries/unpark_settled.sql
var unparkSettledSQL string

//go:embed queries/journal_purge.sql
var journalPurgeSQL string

//go:embed queries/lock_many.sql
var lockManySQL string

//go:embed queries/store_at_once.sql
var storeAtOnceSQL string

//go:embed queries/next_due.sql
var nextDueSQL string

//go:embed queries/renew.sql
var renewSQL string

//go:embed queries/release.sql
var releaseSQL string

//go:embed queries/retry.sql
var retrySQL string

//go:embed queries/pardon.sql
var pardonSQL string

//go:embed queries/put_behind.sql
var putBehindSQL string

//go:embed queries/remove.sql
var removeSQL string

//go:embed queries/remove_place.sql
var removePlaceSQL string

//go:embed queries/go_on.sql
var goOnSQL string

//go:embed queries/park.sql
var parkSQL string

//go:embed queries/resume_stuck.sql
var resumeStuckSQL string

//go:embed queries/resume_behind.sql
var resumeBehindSQL string

//go:embed queries/journaled.sql
var journaledSQL string

//go:embed queries/journal_begin.sql
var journalBeginSQL string

//go:embed queries/journal_end.sql
var journalEndSQL string

//go:embed queries/journal_forget.sql
var journalForgetSQL string

//go:embed queries/is_full.sql
var isFullSQL string

//go:embed queries/ends.sql
var endsSQL string

//go:embed queries/decide_letter.sql
var decideLetterSQL string

//go:embed queries/enqueue.sql
var enqueueSQL string

//go:embed queries/is_waiting.sql
var isWaitingSQL string

//go:embed queries/waiting.sql
var waitingSQL string

//go:embed queries/status.sql
var statusSQL string

//go:embed queries/list.sql
var listSQL string

//go:embed queries/content.sql
var contentSQL string

//go:embed queries/count_before.sql
var countBeforeSQL string

//go:embed queries/run_now.sql
var runNowSQL string

//go:embed queries/replayed.sql
var replayedSQL string

var defaultTables = newTables(schema.Default)

// NewStore returns the inbox of another schema than the default.
func NewStore(schemaName string) Store { return Store{t: newTables(schemaName)} }

// WithCodec returns a store of the same inbox that loads payloads as they were
// before codec encoded them. What a person decides needs none.
func (s Store) WithCodec(codec handler.Codec) Store {
	s.codec = codec
	return s
}

func newTables(schemaName string) *tables {
	if schemaName == "" {
		schemaName = schema.Default
	}
	q := func(sql string) string { return schema.Qualify(sql, schemaName) }
	return &tables{
		claims:  dedup.NewStore(schemaName),
		letters: dlq.NewStore(schemaName),
		rows: queries{
			lock: q(lockSQL), behind: q(behindSQL), store: q(storeSQL), take: q(takes()), nextDue: q(nextDueSQL),
			renew: q(renewSQL), release: q(releaseSQL), retry: q(retrySQL), pardon: q(pardonSQL), putBehind: q(putBehindSQL),
			remove: q(removeSQL), removePlace: q(removePlaceSQL), goOn: q(goOnSQL), park: q(parkSQL), resumeStuck: q(resumeStuckSQL), resumeBehind: q(resumeBehindSQL),
			journaled: q(journaledSQL), journalBegin: q(journalBeginSQL), journalEnd: q(journalEndSQL), journalForget: q(journalForgetSQL), isFull: q(isFullSQL), ends: q(endsSQL), storeAtOnce: q(storeAtOnceSQL), lockMany: q(lockManySQL), unparkSettled: q(unparkSettledSQL), journalPurge: q(journalPurgeSQL),
			decideLetter: q(decideLetterSQL), enqueue: q(enqueueSQL), isWaiting: q(isWaitingSQL),
			waiting: q(waitingSQL), status: q(statusSQL), list: q(listSQL), content: q(contentSQL), countBefore: q(countBeforeSQL),
			runNow: q(runNowSQL), replayed: q(replayedSQL),
		},
	}
}

func (s Store) tables() *tables {
	if s.t != nil {
		return s.t
	}
	return defaultTables
}
