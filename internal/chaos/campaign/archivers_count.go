package campaign

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // names and fills events, and hides nothing
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// archiveBooks knows where each event is: it reads the archive as anybody would, and the
// table.
type archiveBooks struct {
	store store
	dir   string

	read map[string]bool     // objects
	at   map[string][]string // objects by event
	lost map[int]bool        // events that were nowhere at some moment, or are not as they were written
	bad  Tally
}

func (b *archiveBooks) open() error {
	b.read, b.at, b.lost = map[string]bool{}, map[string][]string{}, map[int]bool{}
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		return fmt.Errorf("make the archive: %w", err)
	}
	return nil
}

// eventID is the id of the n-th event, and staysInTable whether it is still to be
// published: see queries/archive_wave.sql.
func eventID(n int) string {
	return uuid.UUID(md5.Sum(fmt.Appendf(nil, "event %d", n))).String() //nolint:gosec // as above
}

func staysInTable(n int) bool { return n%10 == 0 || n%10 == 5 }

// wellFilled reports whether an event has the payload that it was written with.
func wellFilled(n int, payload []byte) bool {
	for i := 1; len(payload) > 0; i++ {
		hash := md5.Sum([]byte(strconv.Itoa(n) + "." + strconv.Itoa(i))) //nolint:gosec // as above
		if !bytes.HasPrefix(payload, hash[:]) {
			return false
		}
		payload = payload[len(hash):]
	}
	return true
}

// everythingIsSomewhere requires, while others archive, that no event is missing: the
// table is read first, and what leaves it is in the archive before.
func (b *archiveBooks) everythingIsSomewhere(ctx context.Context, sent int) error {
	inTable, err := b.table(ctx)
	if err != nil {
		return err
	}
	if err := b.harvest(sent); err != nil {
		return err
	}
	for n := 1; n <= sent; n++ {
		if id := eventID(n); !inTable[id] && len(b.at[id]) == 0 {
			b.lose(n, "it was neither in the table nor in the archive after a kill")
		}
	}
	return nil
}

// count wants each event that is done with in one object, as it was written, and
// all others in the table.
func (b *archiveBooks) count(ctx context.Context, sent int) (Tally, error) {
	inTable, err := b.table(ctx)
	if err == nil {
		err = b.harvest(sent)
	}
	if err != nil {
		return b.bad, err
	}
	t := &b.bad
	for n := 1; n <= sent; n++ {
		id := eventID(n)
		objects, stays := b.at[id], staysInTable(n)
		switch {
		case stays && !inTable[id], !stays && len(objects) == 0:
			b.lose(n, fmt.Sprintf("in the table: %t, in objects %q", inTable[id], objects))
		case stays && len(objects) > 0, len(objects) > 1, !stays && inTable[id]:
			t.Doubled++
			t.note("doubled: event %d; in the table: %t, in objects %q", n, inTable[id], objects)
		}
	}
	t.Lost = len(b.lost)
	return *t, nil
}

func (b *archiveBooks) lose(n int, why string) {
	if !b.lost[n] {
		b.lost[n] = true
		b.bad.note("lost: event %d: %s", n, why)
	}
}

// table is the ids of all events that are in the table.
func (b *archiveBooks) table(ctx context.Context) (map[string]bool, error) {
	rows, err := b.store.pool.Query(ctx, schema.Qualify(`SELECT o.id::text FROM semel.outbox AS o`, b.store.name))
	ids, id := map[string]bool{}, ""
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
			ids[id] = true
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the outbox of schema %q: %w", b.store.name, err)
	}
	return ids, nil
}

// harvest reads the objects that are new. One without a manifest is not finished.
func (b *archiveBooks) harvest(sent int) error {
	numbers := map[string]int{}
	for n := 1; n <= sent; n++ {
		numbers[eventID(n)] = n
	}
	return b.each(".gz", func(name string) error {
		if b.read[name] {
			return nil
		}
		a, err := outbox.ReadArchived(context.Background(), outbox.DirectoryArchive(b.dir), name)
		if errors.Is(err, outbox.ErrNotArchived) {
			return nil
		}
		if err != nil {
			return err
		}
		b.read[name] = true
		last := int64(0)
		for _, r := range a.Records() {
			b.at[r.ID] = append(b.at[r.ID], name)
			if n := numbers[r.ID]; !wellFilled(n, r.Payload) || len(r.Payload) == 0 {
				b.lose(n, fmt.Sprintf("it is not in object %s as it was written", name))
			}
			if r.Seq <= last {
				b.bad.Reordered++
				b.bad.note("reordered: seq %d is behind %d in object %s", r.Seq, last, name)
			}
			last = r.Seq
		}
		return nil
	})
}

// tear flips one byte of some objects, which must not be read then.
func (b *archiveBooks) tear(objects int) error {
	torn := 0
	err := b.each(".gz", func(name string) error {
		if torn++; torn > objects {
			return nil
		}
		path := filepath.Join(b.dir, name)
		data, err := os.ReadFile(path) //nolint:gosec // our own folder
		if err != nil {
			return err
		}
		data[rand.IntN(len(data))] ^= 1 << rand.IntN(8)
		if err := errors.Join(os.Remove(path), os.WriteFile(path, data, 0o600)); err != nil {
			return err
		}
		var damage *outbox.ArchiveError
		if _, err := outbox.ReadArchived(context.Background(), outbox.DirectoryArchive(b.dir), name); !errors.As(err, &damage) || damage.Line == 0 {
			return fmt.Errorf("object %s has a byte flipped, and reading it says: %w", name, err)
		}
		return nil
	})
	if err == nil && torn == 0 {
		err = errors.New("there is no object in which to flip a byte")
	}
	return err
}

// each calls do with the names of all files in the archive that end so.
func (b *archiveBooks) each(suffix string, do func(name string) error) error {
	return filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
			if errors.Is(err, fs.ErrNotExist) { // it was there a moment ago
				return nil
			}
			return err
		}
		name, err := filepath.Rel(b.dir, path)
		if err != nil {
			return err
		}
		return do(filepath.ToSlash(name))
	})
}
