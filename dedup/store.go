package dedup

import (
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/schema"
)

// Store is the processed_messages table of one schema. The zero value is the
// default schema, [schema.Default]. It is safe for concurrent use.
type Store struct {
	q *queries // nil: the default schema's
}

type queries struct {
	schema                                                                                     string // its name
	claim, claimTimed, reclaimTimed, reopen, claimMany, seenMany, seen, consumerName, register string
	purgeTurn, purgeStart, purge, purgeCalls, watermark                                        string
	settingsNote, settingsLoad, end                                                            string
	guard, guardFill, version, gaps, purgeVersions                                             string
}

//go:embed queries/claim.sql
var claimSQL string

//go:embed queries/claim_timed.sql
var claimTimedSQL string

//go:embed queries/reclaim_timed.sql
var reclaimTimedSQL string

//go:embed queries/claim_many.sql
var claimManySQL string

//go:embed queries/seen_many.sql
var seenManySQL string

//go:embed queries/reopen.sql
var reopenSQL string

//go:embed queries/seen.sql
var seenSQL string

//go:embed queries/consumer_name.sql
var consumerNameSQL string

//go:embed queries/register.sql
var registerSQL string

//go:embed queries/watermark.sql
var watermarkSQL string

//go:embed queries/purge_turn.sql
var purgeTurnSQL string

//go:embed queries/purge_start.sql
var purgeStartSQL string

//go:embed queries/purge.sql
var purgeSQL string

//go:embed queries/purge_calls.sql
var purgeCallsSQL string

//go:embed queries/settings_note.sql
var settingsNoteSQL string

//go:embed queries/settings_load.sql
var settingsLoadSQL string

//go:embed queries/end.sql
var endSQL string

//go:embed queries/guard.sql
var guardSQL string

//go:embed queries/guard_fill.sql
var guardFillSQL string

//go:embed queries/version.sql
var versionSQL string

//go:embed queries/gaps.sql
var gapsSQL string

//go:embed queries/purge_versions.sql
var purgeVersionsSQL string

var defaultQueries = newQueries(schema.Default)

// NewStore returns the store of another schema than the default.
func NewStore(schemaName string) Store {
	return Store{q: newQueries(schemaName)}
}

func newQueries(schemaName string) *queries {
	if schemaName == "" {
		schemaName = schema.Default
	}
	return &queries{
		schema:       schemaName,
		claim:        schema.Qualify(claimSQL, schemaName),
		claimTimed:   schema.Qualify(claimTimedSQL, schemaName),
		reclaimTimed: schema.Qualify(reclaimTimedSQL, schemaName),
		claimMany:    schema.Qualify(claimManySQL, schemaName),
		seenMany:     schema.Qualify(seenManySQL, schemaName),
		reopen:       schema.Qualify(reopenSQL, schemaName),
		seen:         schema.Qualify(seenSQL, schemaName),
		consumerName: schema.Qualify(consumerNameSQL, schemaName),
		register:     schema.Qualify(registerSQL, schemaName),
		watermark:    schema.Qualify(watermarkSQL, schemaName),
		purgeTurn:    schema.Qualify(purgeTurnSQL, schemaName),
		purgeStart:   schema.Qualify(purgeStartSQL, schemaName),
		purge:        schema.Qualify(purgeSQL, schemaName),
		purgeCalls:   schema.Qualify(purgeCallsSQL, schemaName),

		purgeVersions: schema.Qualify(purgeVersionsSQL, schemaName),
		end:           schema.Qualify(endSQL, schemaName),
		guard:         schema.Qualify(guardSQL, schemaName),
		guardFill:     schema.Qualify(guardFillSQL, schemaName),
		version:       schema.Qualify(versionSQL, schemaName),
		gaps:          schema.Qualify(gapsSQL, schemaName),
		settingsNote:  schema.Qualify(settingsNoteSQL, schemaName),
		settingsLoad:  schema.Qualify(settingsLoadSQL, schemaName),
	}
}

func (s Store) queries() *queries {
	if s.q != nil {
		return s.q
	}
	return defaultQueries
}

// Entry is the row that a claim writes.
type Entry struct {
	ConsumerID  int32
	MessageID   ID
	Fingerprint pgtype.Int8 // NULL: unknown, matches everything
	Text        pgtype.Text // the id for people, where MessageID is a hash of it
	Outcome     handler.Outcome
}

// Limits are the transaction-local settings that travel with an engine's
// claim. Make them once, with [NewLimits].
type Limits struct{ lock, idle any } // as the claim takes them: text, boxed once and not with every message

// NewLimits returns limits of which neither is ever off.
//
// Lock bounds a claim's wait for a copy in flight elsewhere; the claim then
// fails with SQLSTATE 55P03. The session's own value is back afterwards. Idle
// is for how long the transaction may be idle before the server ends it, so
// that a frozen process does not keep its claims.
func NewLimits(lock, idle time.Duration) Limits {
	return Limits{lock: milliseconds(lock), idle: milliseconds(idle)}
}

// Lock is the first of them as the setting lock_timeout takes it.
func (l Limits) Lock() any { return l.lock }

// QueueClaim queues the claims of entries on b, right behind
// [pgx.Batch.BeginTx]. Again says that the caller holds these messages (a
// replay): a row with outcome stored or dead is taken over.
func (s Store) QueueClaim(b *pgx.Batch, entries []Entry, again bool, limits Limits) {
	sql := s.queries().claimTimed
	if again {
		sql = s.queries().reclaimTimed
	}
	for i := range entries {
		e := &entries[i]
		b.Queue(sql, e.ConsumerID, e.MessageID, e.Fingerprint, e.Text, int16(e.Outcome), limits.lock, limits.idle)
	}
}

// ReadClaim reads the results of a batch of BEGIN and claims to their end:
// claimed[i] tells whether the transaction owns entries[i].
func ReadClaim(results pgx.BatchResults, claimed []bool) error {
	_, err := results.Exec() // BEGIN
	for i := 0; i < len(claimed) && err == nil; i++ {
		var tag pgconn.CommandTag
		if tag, err = results.Exec(); err == nil {
			claimed[i] = claimWon(tag)
		}
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Seen is what the store knows of a message.
type Seen struct {
	Found       bool
	Outcome     handler.Outcome
	Fingerprint pgtype.Int8
}

// Differs reports whether the message seen had another payload than one with
// this fingerprint. An unknown fingerprint differs from none.
func (s Seen) Differs(fingerprint pgtype.Int8) bool {
	return s.Fingerprint.Valid && fingerprint.Valid && s.Fingerprint.Int64 != fingerprint.Int64
}

// QueueSeen queues the look at a message on b; seen is filled when b is closed.
// It must be a later statement than the claim, in the same transaction.
func (s Store) QueueSeen(b *pgx.Batch, consumerID int32, id ID, seen *Seen) {
	b.Queue(s.queries().seen, consumerID, id).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			seen.Found = true
			var outcome int16
			if err := rows.Scan(&outcome, &seen.Fingerprint); err != nil {
				return err
			}
			seen.Outcome = handler.Outcome(outcome)
		}
		return rows.Err()
	})
}
