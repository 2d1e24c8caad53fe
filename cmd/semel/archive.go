package main

import (
	"errors"
	"time"

	"github.com/semel-go/semel/outbox"
)

// archiveFlags are those of the commands that archive what they purge.
type archiveFlags struct {
	dir    string
	retain age
}

func (c *call) archiveFlags() *archiveFlags {
	f := &archiveFlags{retain: age(3650 * 24 * time.Hour)}
	c.flags.Func("archive", "write what is purged to this `folder` first, and read it back", func(dir string) error {
		if dir == "" { // a variable of the shell that is not set
			return errors.New("it names no folder")
		}
		f.dir = dir
		return nil
	})
	c.flags.Var(&f.retain, "retain", "with -archive: how long its files are to be kept, as their manifests say, as an `age`")
	return f
}

// store is nil without the flag.
func (f *archiveFlags) store() outbox.ArchiveStore {
	if f.dir == "" {
		return nil
	}
	return outbox.DirectoryArchive(f.dir)
}
