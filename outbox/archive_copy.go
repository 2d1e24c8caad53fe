package outbox

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// rowVersion is a row as it was when it was read. An update makes another version,
// and so does whoever deletes the row and writes it anew.
type rowVersion struct {
	id          uuid.UUID
	place, xmin string
	hash        [sha256.Size]byte // of its line
}

// archiveCopy is rows as the archive has them: an object, and what its manifest
// says of it.
type archiveCopy struct {
	rows              []rowVersion
	object            []byte            // gzip without a time: the same rows make the same bytes
	sum               [sha256.Size]byte // of the lines
	firstSeq, lastSeq int64
}

// copyRows reads those of the events that were published or discarded before a
// moment, one at a time: only the compressed object is in memory as a whole.
func (s Store) copyRows(ctx context.Context, db querier, ids []pgtype.UUID, before pgtype.Timestamptz) (c *archiveCopy, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("read %d events to be archived: %w", len(ids), err)
		}
	}()
	rows, err := db.Query(ctx, s.queries().archiveLoad, ids, before)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var object bytes.Buffer
	zip, lines := gzip.NewWriter(&object), sha256.New()
	c = &archiveCopy{}
	for rows.Next() {
		line, row, version, err := nextLine(rows)
		if err != nil {
			return nil, err
		}
		lines.Write(line)
		if _, err := zip.Write(line); err != nil {
			return nil, err
		}
		if len(c.rows) == 0 {
			c.firstSeq = row.Seq
		}
		c.lastSeq = row.Seq
		c.rows = append(c.rows, version)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	c.object, c.sum = object.Bytes(), [sha256.Size]byte(lines.Sum(nil))
	return c, nil
}

// ever is a moment before which everything was published that was.
func ever() pgtype.Timestamptz {
	return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
}

func nextLine(rows pgx.Rows) (line []byte, row *archivedRow, version rowVersion, err error) {
	row = &archivedRow{}
	if err := row.scan(rows, &version); err != nil {
		return nil, nil, version, err
	}
	line, err = row.line()
	version.hash = sha256.Sum256(line)
	return line, row, version, err
}

// firstAndLast is when the first and the last of some events were published or
// discarded.
func firstAndLast(lines []archivedLine) (first, last time.Time) {
	for _, l := range lines {
		at := finite(l.row.PublishedAt)
		if at.IsZero() {
			at = finite(l.row.DiscardedAt)
		}
		if y := at.Year(); at.IsZero() || y > 9999 || y < 0 { // written by hand; JSON has no such times
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	return first, last
}
