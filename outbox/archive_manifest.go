package outbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
)

// ArchiveError is returned for an object of the archive, or its manifest, that is not
// what was archived.
type ArchiveError struct {
	Object string
	Line   int // from 1 on; 0 where it is about the whole
	Err    error
}

// Error implements [error].
func (e *ArchiveError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("object %s of the archive: %v", e.Object, e.Err)
	}
	return fmt.Sprintf("object %s of the archive, line %d: %v", e.Object, e.Line, e.Err)
}

// Unwrap returns what is wrong.
func (e *ArchiveError) Unwrap() error { return e.Err }

const (
	// objectSuffix ends the name of an object with events: gzip of JSON Lines.
	objectSuffix = ".jsonl.gz"

	// manifestSuffix takes its place in the name of the manifest beside it.
	manifestSuffix = ".manifest.json"

	// archiveFormat is the version of lines and manifests that this program writes,
	// and the only one that it reads.
	archiveFormat = 1
)

// Manifest says what is in an object of the archive. It stands beside it, as one
// line of JSON.
type Manifest struct {
	Format       int       `json:"format"`
	Object       string    `json:"object"`
	Events       int       `json:"events"`
	SHA256       string    `json:"sha256"`        // of the uncompressed lines
	ObjectSHA256 string    `json:"object_sha256"` // of the object as it is
	FirstSeq     int64     `json:"first_seq"`
	LastSeq      int64     `json:"last_seq"`
	FirstAt      time.Time `json:"first_at"` // when the first of them was published or discarded
	LastAt       time.Time `json:"last_at"`
	ArchivedAt   time.Time `json:"archived_at"`
	RetainUntil  time.Time `json:"retain_until"`
}

// ManifestName returns the name of the manifest that belongs to an object.
func ManifestName(object string) string {
	return strings.TrimSuffix(object, objectSuffix) + manifestSuffix
}

// bytes is the manifest as it is written: the same each time.
func (m *Manifest) bytes() ([]byte, error) {
	text, err := plainJSON(m)
	if err != nil {
		return nil, fmt.Errorf("make the manifest of object %q: %w", m.Object, err)
	}
	return append(sealed(text), '\n'), nil
}

// readManifest undoes [Manifest.bytes].
func readManifest(name string, data []byte) (*Manifest, error) {
	m := &Manifest{}
	line, ended := bytes.CutSuffix(data, []byte("\n"))
	err := unseal(line, m)
	switch {
	case err != nil:
	case !ended || bytes.ContainsRune(line, '\n'):
		err = errors.New("it is no single line")
	case m.Format != archiveFormat:
		err = fmt.Errorf("it has format %d, and this program reads %d: use the one that wrote it, or a newer one", m.Format, archiveFormat)
	}
	if err != nil {
		return nil, &ArchiveError{Object: name, Line: 1, Err: err}
	}
	return m, nil
}

// check compares an object with what its manifest says of it. Lines are what was read
// from it, and sum is their hash.
func (m *Manifest) check(object string, data []byte, lines []archivedLine, sum [sha256.Size]byte) error {
	wrong := func(line int, format string, args ...any) error {
		return &ArchiveError{Object: object, Line: line, Err: fmt.Errorf(format, args...)}
	}
	switch whole := sha256.Sum256(data); {
	case path.Base(m.Object) != path.Base(object):
		return wrong(0, "its manifest is of object %q", m.Object)
	case len(lines) != m.Events:
		return wrong(len(lines)+1, "it has %d lines, and its manifest says %d", len(lines), m.Events)
	case hex.EncodeToString(sum[:]) != m.SHA256:
		return wrong(0, "its lines are not those that its manifest tells of: their SHA-256 is %x and should be %s", sum, m.SHA256)
	case hex.EncodeToString(whole[:]) != m.ObjectSHA256:
		return wrong(1, "what is before or between the lines is not as it was written, although they read well: its SHA-256 is %x and should be %s", whole, m.ObjectSHA256)
	case lines[0].row.Seq != m.FirstSeq || lines[len(lines)-1].row.Seq != m.LastSeq:
		return wrong(0, "its lines are not those that its manifest tells of: their first and last seq are others")
	}
	return nil
}
