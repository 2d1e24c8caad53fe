package main

import (
	"context"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/outbox"
)

// archive sees what is written: the points at the archive.
type archive struct {
	outbox.DirectoryArchive
	trap *trap
}

// Create implements [outbox.ArchiveStore].
func (a *archive) Create(ctx context.Context, name string, data []byte, until time.Time) error {
	isObject := strings.HasSuffix(name, ".gz")
	if isObject && a.trap.springs(wire.MidWrite) {
		undo, err := dieBehind(len(data) / 2)
		if err != nil {
			return err
		}
		defer undo() // somebody else has written it already
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
