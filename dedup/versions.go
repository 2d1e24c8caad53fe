package dedup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// ErrNoVersion is returned by [Store.Version] for an entity of which no guarded
// message was handled, or whose version was purged.
var ErrNoVersion = errors.New("no version of this entity was handled")

// EntityVersion is what a consumer with a version guard knows of an entity.
type EntityVersion struct {
	// Kind and Entity are what [GuardConfig] made of the messages.
	Kind   string
	Entity []byte

	// Version is the highest that was handled, and MessageID under what the message
	// that brought it was claimed; UpdatedAt is when, by the database's clock.
	Version   int64
	MessageID ID
	UpdatedAt time.Time

	// Gaps is how many versions were passed over and have not come since, where the
	// guard counts them or holds for them. It is right where each version is one message.
	Gaps int64
}

// Version is what a consumer knows of an entity, see [GuardConfig] for kind. The
// error wraps [ErrNoVersion] when that is nothing. q is a pool, a connection or a
// transaction.
func (s Store) Version(ctx context.Context, q querier, consumer, kind string, entity []byte) (EntityVersion, error) {
	var v EntityVersion
	rows, err := q.Query(ctx, s.queries().version, ConsumerID(consumer), entityID(kind, entity))
	if err == nil {
		v, err = pgx.CollectExactlyOneRow(rows, readVersion)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoVersion
	}
	if err != nil {
		return v, fmt.Errorf("look at the version that consumer %.64q handled: %w", consumer, err)
	}
	return v, nil
}

// Gaps are entities of which a consumer has not handled every version, at most
// limit of them.
func (s Store) Gaps(ctx context.Context, q querier, consumer string, limit int) ([]EntityVersion, error) {
	var list []EntityVersion
	rows, err := q.Query(ctx, s.queries().gaps, ConsumerID(consumer), limit)
	if err == nil {
		list, err = pgx.CollectRows(rows, readVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("look for versions that consumer %.64q has not handled: %w", consumer, err)
	}
	return list, nil
}

func readVersion(row pgx.CollectableRow) (v EntityVersion, err error) {
	var updated pgtype.Timestamptz
	err = row.Scan(&v.Kind, &v.Entity, &v.Version, &v.Gaps, &v.MessageID, &updated)
	v.UpdatedAt = updated.Time.UTC()
	return v, err
}

// PurgeVersions forgets entities whose last version came longer ago than
// retention, by the database's clock. The next message of such an entity runs,
// however old it is, so retention must be longer than every way by which an older
// one can still come: the broker's retention, a dead letter that may be replayed.
// Where [GuardConfig.First] is set it must be longer than an entity can rest.
//
// Nobody calls it unless you do: a row of about 210 bytes for each entity and
// consumer, kept for ever, is what most can afford. Else it is as [Store.Purge].
func (s Store) PurgeVersions(ctx context.Context, db DB, retention time.Duration, cfg PurgeConfig) (deleted int64, err error) {
	deleted, err = s.purge(ctx, db, "key_versions", s.queries().purgeVersions, retention, cfg)
	if err != nil {
		return deleted, fmt.Errorf("purge versions of more than %s ago (%d deleted): %w", retention, deleted, err)
	}
	return deleted, nil
}
