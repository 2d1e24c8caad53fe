package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

const (
	smallPayload, largePayload = payloadBytes, 2048

	// writtenAtOnce is how many events go into one transaction.
	writtenAtOnce = 100
)

// eventSize measures what an event takes while it is pending, and what is left
// of it when relays have published it meanwhile: heap, index and all else of the
// outbox as they grew, with the space that the marks have left behind. Then what it
// takes in an archive.
func eventSize(payload int) func(*bench, context.Context) (result, error) {
	return func(b *bench, ctx context.Context) (r result, err error) {
		db, err := newDatabase(ctx, fleetConns+workers)
		if err != nil {
			return result{}, err
		}
		defer db.drop()
		if err := db.writeEvents(ctx, b.sized, payload); err != nil {
			return result{}, err
		}
		pending, err := db.bytesOf(ctx, "outbox", b.sized)
		if err != nil {
			return result{}, err
		}

		if err := db.exec(ctx, `TRUNCATE outbox`); err != nil {
			return result{}, err
		}
		f, err := db.startFleet(ctx, db.pool, batch, nulls())
		if err != nil {
			return result{}, err
		}
		defer func() { err = errors.Join(err, f.end()) }()
		f.open()
		if err := db.writeEvents(f.run, b.sized, payload); err != nil {
			return result{}, err
		}
		for f.sent() < int64(b.sized) {
			select {
			case <-f.run.Done():
				return result{}, context.Cause(f.run)
			case <-time.After(10 * time.Millisecond):
			}
		}
		published, err := db.bytesOf(ctx, "outbox", b.sized)
		if err != nil {
			return result{}, err
		}
		archived, err := db.archive(ctx)
		return result{value: published, details: []string{
			fmt.Sprintf("%d events with %d bytes of payload that do not compress", b.sized, payload),
			fmt.Sprintf("pending %.0f, published %.0f, archived %.0f bytes each", pending, published, archived/float64(b.sized)),
		}}, err
	}
}

// archive purges what was published into a folder and returns how many bytes are
// there, manifests included.
func (db *database) archive(ctx context.Context) (bytes float64, err error) {
	dir, err := os.MkdirTemp("", "semel-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := outbox.NewStore(db.schema).Purge(ctx, db.pool, 0, outbox.PurgeConfig{Archive: outbox.DirectoryArchive(dir)}); err != nil {
		return 0, err
	}
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += float64(info.Size())
		}
		return err
	})
	return bytes, err
}

// writeEvents writes n events, many in a transaction.
func (db *database) writeEvents(ctx context.Context, n, payload int) error {
	w := outbox.NewWriter(db.schema)
	for done := 0; done < n; done += writtenAtOnce {
		events := make([]outbox.Event, min(writtenAtOnce, n-done))
		for i := range events {
			m := messageOf(payload)
			events[i] = outbox.Event{ID: m.ID, AggregateType: aggregateType, AggregateID: string(m.Key), Type: m.Type, Payload: m.Payload}
		}
		if err := pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error { return w.Write(ctx, tx, events...) }); err != nil {
			return err
		}
	}
	return nil
}

// storedSize measures what a message takes while it waits in the inbox, without
// the row that remembers it, which stays longer.
func storedSize(payload int) func(*bench, context.Context) (result, error) {
	return func(b *bench, ctx context.Context) (result, error) {
		db, err := newDatabase(ctx, workers)
		if err != nil {
			return result{}, err
		}
		defer db.drop()
		in, err := db.inbox(db.pool, "bench", work, nil)
		if err != nil {
			return result{}, err
		}
		for done := 0; done < b.sized; done += storedAtOnce {
			msgs := make([]*handler.Message, min(storedAtOnce, b.sized-done))
			for i := range msgs {
				msgs[i] = messageOf(payload)
			}
			if _, err := in.StoreAll(ctx, msgs); err != nil {
				return result{}, err
			}
		}
		bytes, err := db.bytesOf(ctx, "inbox_messages", b.sized)
		return result{value: bytes, details: []string{
			fmt.Sprintf("%d messages with %d bytes of payload that do not compress", b.sized, payload),
		}}, err
	}
}

// bytesOf is the size of a table of n rows by its rows.
func (db *database) bytesOf(ctx context.Context, table string, n int) (float64, error) {
	var rows int
	var bytes float64
	err := db.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM `+table+`), pg_total_relation_size('`+table+`')::float8`).Scan(&rows, &bytes)
	if err != nil {
		return 0, fmt.Errorf("read the size of %s: %w", table, err)
	}
	if rows != n {
		return 0, fmt.Errorf("%d rows were written, %s has %d", n, table, rows)
	}
	return bytes / float64(n), nil
}
