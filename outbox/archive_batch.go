package outbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// archiveBatch is what goes into one object, as it stands in the database: whoever
// comes after a crash goes on with exactly these events. One batch is open at a time.
//
//	begun ──► filled ──► (object, manifest) ──► verified ──► (rows deleted) ──► done
//	             └─► given up: its rows changed before there was an object
type archiveBatch struct {
	id          pgtype.UUID
	ids         []pgtype.UUID // nil: it is only begun
	object      string
	events      int
	sum         [sha256.Size]byte // of the lines
	firstSeq    int64
	lastSeq     int64
	archivedAt  time.Time
	retainUntil time.Time
	verified    bool
}

// openBatch returns the batch that is open, nil if none is.
func (a *archiving) openBatch(ctx context.Context) (*archiveBatch, error) {
	rows, err := a.db.Query(ctx, a.q.archiveOpen)
	var open []*archiveBatch
	if err == nil {
		open, err = pgx.CollectRows(rows, decodeBatch)
	}
	if err != nil {
		return nil, fmt.Errorf("look what is being archived: %w", err)
	}
	if len(open) == 0 {
		return nil, nil //nolint:nilnil // there is none, and that is well
	}
	return open[0], nil
}

func decodeBatch(row pgx.CollectableRow) (*archiveBatch, error) {
	b := &archiveBatch{}
	var (
		object              pgtype.Text
		events              pgtype.Int4
		sum                 []byte
		first, last         pgtype.Int8
		archivedAt, retains pgtype.Timestamptz
	)
	err := row.Scan(&b.id, &b.ids, &object, &events, &sum, &first, &last, &archivedAt, &retains, &b.verified)
	if err != nil || b.ids == nil {
		return b, err
	}
	if copy(b.sum[:], sum) != len(b.sum) {
		return nil, fmt.Errorf("the SHA-256 of batch %s has %d bytes", b.id, len(sum))
	}
	b.object, b.events, b.firstSeq, b.lastSeq = object.String, int(events.Int32), first.Int64, last.Int64
	b.archivedAt, b.retainUntil = archivedAt.Time.UTC(), retains.Time.UTC()
	return b, nil
}

// begin begins a batch unless somebody has one that is open.
func (a *archiving) begin(ctx context.Context) error {
	id := pgtype.UUID{Bytes: uuid.Must(uuid.NewV7()), Valid: true}
	if _, err := a.ask(ctx, a.q.archiveBegin, id); err != nil {
		return fmt.Errorf("begin a batch of the archive: %w", err)
	}
	return nil
}

// fill commits what is in a batch, unless somebody did meanwhile.
func (a *archiving) fill(ctx context.Context, b *archiveBatch, c *archiveCopy) error {
	ids := make([]pgtype.UUID, len(c.rows))
	for i, r := range c.rows {
		ids[i] = pgtype.UUID{Bytes: r.id, Valid: true}
	}
	name := fmt.Sprintf("events-%d-%d-%s%s", c.firstSeq, c.lastSeq, b.id, objectSuffix)
	if _, err := a.ask(ctx, a.q.archiveFill, b.id, ids, c.sum[:], c.firstSeq, c.lastSeq, name, a.retention); err != nil {
		return fmt.Errorf("commit what goes into object %q of the archive: %w", name, err)
	}
	return nil
}

// noteVerified notes that the object is right. No: somebody gave the batch up.
func (a *archiving) noteVerified(ctx context.Context, b *archiveBatch) (bool, error) {
	n, err := a.ask(ctx, a.q.archiveVerified, b.id)
	if err != nil {
		return false, fmt.Errorf("note that object %q of the archive is right: %w", b.object, err)
	}
	return n > 0, nil
}

func (a *archiving) giveUp(ctx context.Context, b *archiveBatch) error {
	if _, err := a.ask(ctx, a.q.archiveGiveUp, b.id); err != nil {
		return fmt.Errorf("give up object %q of the archive: %w", b.object, err)
	}
	return nil
}

func (a *archiving) noteDone(ctx context.Context, b *archiveBatch) error {
	if _, err := a.ask(ctx, a.q.archiveDone, b.id); err != nil {
		return fmt.Errorf("note that the events of object %q of the archive are deleted: %w", b.object, err)
	}
	return nil
}

// ask runs a statement and returns how many rows it changed.
func (a *archiving) ask(ctx context.Context, sql string, args ...any) (int64, error) {
	rows, err := a.db.Query(ctx, sql, args...)
	if err != nil {
		return 0, err
	}
	rows.Close()
	return rows.CommandTag().RowsAffected(), rows.Err()
}
