package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
)

// aboutRestore is the note of the command that restores.
const aboutRestore = `A FILE is an object of the archive (.jsonl.gz); its manifest lies beside it. All are read and compared
with their manifests first: one byte that is not as it was, and nothing is restored.

Events come back as they were, published or discarded, and no relay publishes them again. The next purge
deletes them, and archives them anew if it archives: with -list look at them without restoring them.

The database role needs the rights of an application and of a relay ("semel migrate grants").`

// restoredFile is one file, and what came of it.
type restoredFile struct {
	name              string
	archived          *outbox.Archived
	restored, skipped int
}

func outboxRestore(ctx context.Context, c *call) error {
	c.needsDatabase()
	list := c.flags.Bool("list", false, "only list the events, with -json as a whole; needs no database")
	asJSON := c.flags.Bool("json", false, "print JSON; bytes that are no text as base64")
	names, err := c.parse()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return c.usage("name the files to restore, such as events-1-10000-....jsonl.gz")
	}
	files, err := readArchived(ctx, names)
	if err != nil {
		return err
	}
	if *list {
		return c.listArchived(files, *asJSON)
	}
	return c.withOutbox(ctx, func(conn *pgx.Conn, store outbox.Store) error {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			for i := range files {
				f := &files[i]
				var err error
				if f.restored, f.skipped, err = store.Restore(ctx, tx, f.archived); err != nil {
					return fmt.Errorf("restore %s: %w", f.name, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return c.printRestored(files, *asJSON)
	})
}

// readArchived reads all files before anything is done with one.
func readArchived(ctx context.Context, names []string) ([]restoredFile, error) {
	files := make([]restoredFile, len(names))
	for i, name := range names {
		real, err := filepath.EvalSymlinks(name)
		if err != nil {
			return nil, fmt.Errorf("read an archive: %w", err)
		}
		archived, err := outbox.ReadArchived(ctx, outbox.DirectoryArchive(filepath.Dir(real)), filepath.Base(real))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		files[i] = restoredFile{name: name, archived: archived}
	}
	return files, nil
}

func (c *call) listArchived(files []restoredFile, asJSON bool) error {
	var records []outbox.Record
	for _, f := range files {
		records = append(records, f.archived.Records()...)
	}
	if !asJSON {
		return c.printEvents(records)
	}
	objects := make([]object, len(records))
	for i := range records {
		objects[i] = wholeEvent(&records[i])
	}
	return writeJSON(c.stdout, objects)
}

func (c *call) printRestored(files []restoredFile, asJSON bool) error {
	objects := make([]object, len(files))
	for i, f := range files {
		m := f.archived.Manifest
		objects[i] = object{
			"file": f.name, "object": m.Object, "events": m.Events, "restored": f.restored, "skipped": f.skipped,
			"first_seq": m.FirstSeq, "last_seq": m.LastSeq, "sha256": m.SHA256,
		}
		objects[i].putTime("archived_at", m.ArchivedAt)
		objects[i].putTime("retain_until", m.RetainUntil)
		if !asJSON {
			fmt.Fprintf(c.stdout, "%s: %d events, %d restored, %d were there\n", printable(f.name), m.Events, f.restored, f.skipped)
		}
	}
	if asJSON {
		return writeJSON(c.stdout, objects)
	}
	return nil
}
