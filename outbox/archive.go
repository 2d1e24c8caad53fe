package outbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Errors of an [ArchiveStore].
var (
	// ErrNotArchived is returned by [ArchiveStore] for an object that is not there.
	ErrNotArchived = errors.New("no such object in the archive")

	// ErrArchiveConflict is returned by [ArchiveStore] for an object that is there
	// with other bytes. It is never overwritten: a person has to look.
	ErrArchiveConflict = errors.New("the archive has this object with other bytes")

	// ErrBadObjectName is returned for a name that [CheckObjectName] refuses.
	ErrBadObjectName = errors.New("impossible name of an object")
)

// ArchiveStore is where objects are archived: a folder ([DirectoryArchive]) or
// object storage. An object is written once; it is there as a whole or not at all,
// also when a process dies while it writes. Nothing here deletes one.
//
// Implementations must be safe for concurrent use, by several processes too.
type ArchiveStore interface {
	// Create writes an object that must not be there, and returns when it can no
	// longer be lost. The same bytes under the same name are no error: somebody who
	// died repeats it. It must return [ErrArchiveConflict] when the object has other
	// bytes, and leave it as it is. A store that can keep anybody from deleting
	// an object does so until retainUntil, unless that is zero.
	Create(ctx context.Context, name string, data []byte, retainUntil time.Time) error

	// Read returns an object. It must return [ErrNotArchived] when it is not there,
	// and only then: an archive that cannot be reached may have it.
	Read(ctx context.Context, name string) ([]byte, error)
}

// CheckObjectName returns an error wrapping [ErrBadObjectName] unless every store
// can use the name: parts of letters, digits and -_.=+ with single slashes between
// them, none of which begins with a dot, 255 bytes each and 900 in all.
func CheckObjectName(name string) error {
	refuse := func(why string) error {
		return fmt.Errorf("%w %.80q: %s", ErrBadObjectName, name, why)
	}
	switch {
	case !fs.ValidPath(name) || name == ".":
		return refuse("it must be parts with single slashes between them")
	case len(name) > maxObjectName:
		return refuse(fmt.Sprintf("it has %d bytes, at most %d are allowed", len(name), maxObjectName))
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part[0] == '.':
			return refuse("a part must not begin with a dot")
		case len(part) > MaxName:
			return refuse(fmt.Sprintf("a part has %d bytes, at most %d are allowed", len(part), MaxName))
		case strings.ContainsFunc(part, unusual):
			return refuse("only letters, digits and -_.=+ are allowed in a part")
		}
	}
	return nil
}

// maxObjectName leaves room for a prefix: S3 has 1,024 bytes.
const maxObjectName = 900

func unusual(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("-_.=+", r):
		return false
	}
	return true
}
