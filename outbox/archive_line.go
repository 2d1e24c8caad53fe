package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"reflect"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// archivedRow is a row of the outbox as a line of the archive has it: all columns
// under their names, but the shard, which the database computes. What is NULL is
// left out. A payload that a codec has encoded stays so: the header behind
// the others says under which key.
//
// The order of the fields is that of the line, and the same row always makes the
// same line.
type archivedRow struct {
	Seq           int64     `json:"seq"`
	ID            uuid.UUID `json:"id"`
	AggregateType string    `json:"aggregatetype"`
	AggregateID   string    `json:"aggregateid"`
	Type          string    `json:"type"`
	Version       *int64    `json:"version,omitzero"`
	CreatedAt     stamp     `json:"created_at,omitzero"`
	PublishedAt   stamp     `json:"published_at,omitzero"`
	DiscardedAt   stamp     `json:"discarded_at,omitzero"`
	OccurredAt    stamp     `json:"occurred_at,omitzero"`
	ContentType   *string   `json:"content_type,omitzero"`
	CorrelationID *string   `json:"correlation_id,omitzero"`
	CausationID   *string   `json:"causation_id,omitzero"`
	Source        *string   `json:"source,omitzero"`
	Payload       blob      `json:"payload,omitzero"`
	HeaderNames   []*string `json:"header_names,omitzero"`
	HeaderValues  []blob    `json:"header_values,omitzero"`
	HeaderTags    *string   `json:"header_tags,omitzero"`
	Attempts      int32     `json:"attempts"`
	LastError     *string   `json:"last_error,omitzero"`
	FirstFailedAt stamp     `json:"first_failed_at,omitzero"`
	NextAttemptAt stamp     `json:"next_attempt_at,omitzero"`
	QuarantinedAt stamp     `json:"quarantined_at,omitzero"`
	LeaseEpoch    *int64    `json:"lease_epoch,omitzero"`
	LeaseAttempts int32     `json:"lease_attempts"`
}

// scan reads a row of queries/archive_load.sql.
func (r *archivedRow) scan(rows pgx.Rows, version *rowVersion) error {
	var values [][]byte
	err := rows.Scan(
		&version.place, &version.xmin, &r.Seq, &r.ID, &r.AggregateType, &r.AggregateID, &r.Type, &r.Version,
		&r.CreatedAt, &r.PublishedAt, &r.DiscardedAt, &r.OccurredAt, &r.ContentType, &r.CorrelationID, &r.CausationID, &r.Source,
		(*[]byte)(&r.Payload), &r.HeaderNames, &values, &r.HeaderTags, &r.Attempts, &r.LastError,
		&r.FirstFailedAt, &r.NextAttemptAt, &r.QuarantinedAt, &r.LeaseEpoch, &r.LeaseAttempts,
	)
	if values != nil {
		r.HeaderValues = make([]blob, len(values))
		for i, v := range values {
			r.HeaderValues[i] = v
		}
	}
	version.id = r.ID
	return err
}

// args are the parameters of queries/archive_restore.sql.
func (r *archivedRow) args() []any {
	var values [][]byte
	if r.HeaderValues != nil {
		values = make([][]byte, len(r.HeaderValues))
		for i, v := range r.HeaderValues {
			values[i] = v
		}
	}
	return []any{
		r.Seq, r.ID, r.AggregateType, r.AggregateID, r.Type, r.Version,
		r.CreatedAt, r.PublishedAt, r.DiscardedAt, r.OccurredAt, r.ContentType, r.CorrelationID, r.CausationID, r.Source,
		[]byte(r.Payload), r.HeaderNames, values, r.HeaderTags, r.Attempts, r.LastError,
		r.FirstFailedAt, r.NextAttemptAt, r.QuarantinedAt, r.LeaseEpoch, r.LeaseAttempts,
	}
}

// archivedColumns are the columns that a line has.
func archivedColumns() (names []string) {
	for row, i := reflect.TypeFor[archivedRow](), 0; i < row.NumField(); i++ {
		name, _, _ := strings.Cut(row.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// line is the row as a line, with its end.
func (r *archivedRow) line() ([]byte, error) {
	text, err := plainJSON(r)
	if err != nil {
		return nil, fmt.Errorf("make a line of event %s: %w", r.ID, err)
	}
	return append(sealed(text), '\n'), nil
}

// readLine undoes [archivedRow.line], without its end. A byte that is not what it
// was, anywhere, is an error.
func readLine(line []byte) (*archivedRow, error) {
	r := &archivedRow{}
	if err := unseal(line, r); err != nil {
		return nil, err
	}
	if !r.PublishedAt.Valid && !r.DiscardedAt.Valid {
		return nil, fmt.Errorf("event %s is still to be published: that is never archived", r.ID)
	}
	return r, nil
}

// Each line ends with a check of itself, so that damage is found where it is: the
// hash of a whole object only says that there is some.
const (
	sealBegin = `,"crc32c":"`
	sealEnd   = `"}`
	sealSize  = len(sealBegin) + 8 + len(sealEnd)
)

func sealed(object []byte) []byte {
	open := object[:len(object)-1] // without }
	return fmt.Appendf(open, "%s%08x%s", sealBegin, checksum(open), sealEnd)
}

func unseal(line []byte, v any) error {
	cut := len(line) - sealSize
	if cut < 0 {
		return errors.New("it is cut short")
	}
	open := line[:cut]
	if want := fmt.Sprintf("%s%08x%s", sealBegin, checksum(open), sealEnd); want != string(line[cut:]) {
		return errors.New("it is not as it was written: its checksum does not fit")
	}
	d := json.NewDecoder(bytes.NewReader(append(bytes.Clone(open), '}')))
	d.DisallowUnknownFields() // a newer program wrote what would be lost here
	return d.Decode(v)
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
