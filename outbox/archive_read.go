package outbox

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/msgrow"
)

// Archived is an object of the archive that was read back and is what was archived.
type Archived struct {
	Manifest Manifest

	lines []archivedLine
}

// archivedLine is a line that reads well.
type archivedLine struct {
	row  *archivedRow
	hash [sha256.Size]byte // of the line
}

// ReadArchived reads an object and its manifest, and compares all that is known of
// them: a single byte that is not as it was is an [ArchiveError].
func ReadArchived(ctx context.Context, store ArchiveStore, object string) (*Archived, error) {
	data, err := store.Read(ctx, object)
	if err != nil {
		return nil, err
	}
	manifest, err := store.Read(ctx, ManifestName(object))
	if err != nil {
		return nil, fmt.Errorf("read the manifest of object %q: %w", object, err)
	}
	m, err := readManifest(ManifestName(object), manifest)
	if err != nil {
		return nil, err
	}
	lines, sum, err := readLines(object, data)
	if err != nil {
		return nil, err
	}
	if err := m.check(object, data, lines, sum); err != nil {
		return nil, err
	}
	return &Archived{Manifest: *m, lines: lines}, nil
}

// Records returns the events, in the order of the archive. A payload that was
// encoded by a codec still is.
func (a *Archived) Records() []Record {
	records := make([]Record, len(a.lines))
	for i, l := range a.lines {
		records[i] = l.row.record()
	}
	return records
}

// readLines reads all lines of an object, and hashes them. An object without
// a line is none.
func readLines(object string, data []byte) (lines []archivedLine, sum [sha256.Size]byte, err error) {
	defer func() {
		if err != nil {
			err = &ArchiveError{Object: object, Line: len(lines) + 1, Err: err}
		}
	}()
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, sum, err
	}
	hash := sha256.New()
	text := bufio.NewReaderSize(io.TeeReader(unzip, hash), 1<<16)
	for {
		line, err := text.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0 && len(lines) > 0:
			return lines, [sha256.Size]byte(hash.Sum(nil)), nil
		case errors.Is(err, io.EOF):
			return lines, sum, errors.New("it is cut short")
		}
		row, lineErr := readLine(bytes.TrimSuffix(line, []byte("\n")))
		if err := errors.Join(lineErr, err); err != nil {
			return lines, sum, err
		}
		lines = append(lines, archivedLine{row: row, hash: sha256.Sum256(line)})
	}
}

// record is the row as [Store.Load] has it.
func (r *archivedRow) record() Record {
	names, values := make([]string, len(r.HeaderNames)), make([][]byte, len(r.HeaderValues))
	for i, name := range r.HeaderNames {
		names[i] = orZero(name)
	}
	for i, v := range r.HeaderValues {
		values[i] = v
	}
	stored, names, values, tags := msgrow.Unmark(names, values, orZero(r.HeaderTags))
	out := Record{
		Event: Event{
			ID: r.ID.String(), AggregateType: r.AggregateType, AggregateID: r.AggregateID, Type: r.Type, Version: orZero(r.Version),
			Payload: r.Payload, ContentType: orZero(r.ContentType), OccurredAt: finite(r.OccurredAt),
			CorrelationID: orZero(r.CorrelationID), CausationID: orZero(r.CausationID), Source: orZero(r.Source),
			Headers: headersOf(names, values, tags),
		},
		Encoded: stored.Encoded, KeyID: stored.KeyID, Seq: r.Seq, Shard: int(hashOf(r.AggregateType, r.AggregateID)[0]), CreatedAt: finite(r.CreatedAt),
		PublishedAt: finite(r.PublishedAt), NextAttemptAt: finite(r.NextAttemptAt), QuarantinedAt: finite(r.QuarantinedAt),
		DiscardedAt: finite(r.DiscardedAt), FirstFailedAt: finite(r.FirstFailedAt),
		Attempts: int(r.Attempts), LastError: orZero(r.LastError),
	}
	out.State = StateDiscarded
	if r.PublishedAt.Valid {
		out.State = StatePublished
	}
	return out
}

func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// finite is a time that a person can be shown.
func finite(s stamp) time.Time {
	if !s.Valid || s.InfinityModifier != pgtype.Finite {
		return time.Time{}
	}
	return s.Time.UTC()
}
