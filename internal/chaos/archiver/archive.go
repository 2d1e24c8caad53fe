package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/outbox"
)

// archive sees what is written: the points at the archive.
type archive struct {
	outbox.DirectoryArchive
	dir  string
	trap *trap
}

// Create implements [outbox.ArchiveStore].
func (a *archive) Create(ctx context.Context, name string, data []byte, until time.Time) error {
	isObject := strings.HasSuffix(name, ".gz")
	if isObject && a.trap.armed(wire.MidWrite) {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		go a.watch(watching, filepath.Join(a.dir, filepath.Dir(filepath.FromSlash(name))))
	}
	if err := a.DirectoryArchive.Create(ctx, name, data, until); err != nil {
		return err
	}
	if isObject {
		a.trap.pass(wire.ObjectWritten)
	} else {
		a.trap.pass(wire.ManifestWritten)
	}
	return nil
}

// watch stops the process as soon as there is something in a folder that has not
// got its name yet.
func (a *archive) watch(ctx context.Context, folder string) {
	for ctx.Err() == nil {
		entries, _ := os.ReadDir(folder) // there may be none yet
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				a.trap.pass(wire.MidWrite)
				return
			}
		}
	}
}
