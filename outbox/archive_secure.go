package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// secure has a batch in the archive and returns what it reads back from there: its
// lines, and they are right. Nil: the batch is given up, since its rows have changed
// and were not archived.
//
// Whoever runs this after a crash, or beside somebody else, finds what there is
// already, and writes the same where there is nothing.
func (a *archiving) secure(ctx context.Context, b *archiveBatch, c *archiveCopy) ([]archivedLine, error) {
	object, err := a.archive.Read(ctx, b.object)
	if errors.Is(err, ErrNotArchived) {
		switch {
		case b.verified: // some of its rows may be nowhere else any more
			return nil, fmt.Errorf("object %q was in the archive, and is not any more: bring it back, no event is purged until then: %w", b.object, err)
		case c.sum != b.sum:
			return nil, a.giveUp(ctx, b)
		}
		if err := a.archive.Create(ctx, b.object, c.object, b.retainUntil); err != nil {
			return nil, err
		}
		object, err = a.archive.Read(ctx, b.object)
	}
	if err != nil {
		return nil, err
	}
	lines, sum, err := readLines(b.object, object)
	switch {
	case err != nil:
		return nil, err
	case sum != b.sum || len(lines) != b.events:
		return nil, &ArchiveError{Object: b.object, Err: fmt.Errorf("%w: no event is purged until somebody has looked", ErrArchiveConflict)}
	}
	if err := a.writeManifest(ctx, b, object, lines); err != nil {
		return nil, err
	}
	if err := a.settleObjects(ctx, b, object); err != nil {
		return nil, err
	}
	if ours, err := a.noteVerified(ctx, b); err != nil || !ours {
		return nil, err
	}
	return lines, nil
}

// writeManifest writes the manifest beside an object, unless it is there, and
// compares it with the object.
func (a *archiving) writeManifest(ctx context.Context, b *archiveBatch, object []byte, lines []archivedLine) error {
	name, whole := ManifestName(b.object), sha256.Sum256(object)
	data, err := a.archive.Read(ctx, name)
	if errors.Is(err, ErrNotArchived) {
		first, last := firstAndLast(lines)
		m := Manifest{
			Format: archiveFormat, Object: b.object, Events: b.events,
			SHA256: hex.EncodeToString(b.sum[:]), ObjectSHA256: hex.EncodeToString(whole[:]),
			FirstSeq: b.firstSeq, LastSeq: b.lastSeq, FirstAt: first, LastAt: last,
			ArchivedAt: b.archivedAt, RetainUntil: b.retainUntil,
		}
		if data, err = m.bytes(); err != nil {
			return err
		}
		if err := a.archive.Create(ctx, name, data, b.retainUntil); err != nil {
			return err
		}
		data, err = a.archive.Read(ctx, name)
	}
	if err != nil {
		return err
	}
	m, err := readManifest(name, data)
	if err != nil {
		return err
	}
	return m.check(b.object, object, lines, b.sum)
}

// settleObjects has the store say that nothing can be lost any more, before anything is
// deleted: what was found there may be of somebody who died before it had said so.
func (a *archiving) settleObjects(ctx context.Context, b *archiveBatch, object []byte) error {
	if b.verified {
		return nil
	}
	name := ManifestName(b.object)
	manifest, err := a.archive.Read(ctx, name)
	if err != nil {
		return err
	}
	if err := a.archive.Create(ctx, b.object, object, b.retainUntil); err != nil {
		return err
	}
	return a.archive.Create(ctx, name, manifest, b.retainUntil)
}

// deletedAtOnce is how many rows of an object one transaction deletes.
const deletedAtOnce = 1000

// clear deletes rows that are in the archive as they are: one that somebody has
// changed meanwhile stays, and is archived again as it is then.
func (a *archiving) clear(ctx context.Context, c *archiveCopy, archived map[[16]byte][sha256.Size]byte) (deleted int64, err error) {
	var ids []pgtype.UUID
	var places, xmins []string
	for i, r := range c.rows {
		if hash, ok := archived[r.id]; ok && hash == r.hash {
			ids = append(ids, pgtype.UUID{Bytes: r.id, Valid: true})
			places, xmins = append(places, r.place), append(xmins, r.xmin)
		}
		if len(ids) == 0 || (len(ids) < deletedAtOnce && i < len(c.rows)-1) {
			continue
		}
		var n int64
		rows, err := a.db.Query(ctx, a.q.archiveDelete, ids, places, xmins)
		if err == nil {
			_, err = pgx.ForEachRow(rows, []any{&n}, func() error { return nil })
		}
		if err != nil {
			return deleted, fmt.Errorf("delete events that are archived: %w", err)
		}
		deleted += n
		ids, places, xmins = ids[:0], places[:0], xmins[:0]
	}
	return deleted, nil
}

// hashes are the hashes of lines by the ids of their events.
func hashes(lines []archivedLine) map[[16]byte][sha256.Size]byte {
	m := make(map[[16]byte][sha256.Size]byte, len(lines))
	for _, l := range lines {
		m[l.row.ID] = l.hash
	}
	return m
}
