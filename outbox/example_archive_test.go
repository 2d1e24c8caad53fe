package outbox_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/exampledb"
	"github.com/semel-go/semel/outbox"
)

// Events that were published long ago go to a folder, and are deleted when they were
// read back from there. Later somebody wants to see one again.
func ExampleDirectoryArchive() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	dir, err := os.MkdirTemp("", "archive")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of an example
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := outbox.Write(ctx, tx, outbox.Event{AggregateType: "order", AggregateID: "42", Type: "OrderPaid"}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE semel.outbox SET published_at = now() - interval '40 days'`) // as a relay did
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	var store outbox.Store
	archive := outbox.DirectoryArchive(dir)
	deleted, err := store.Purge(ctx, pool, 30*24*time.Hour, outbox.PurgeConfig{Archive: archive})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(deleted, "archived and deleted")

	var object string // the newest; its name also stands in the manifest, and in the file's path
	if err := pool.QueryRow(ctx, `SELECT object FROM semel.archive_batches ORDER BY archived_at DESC LIMIT 1`).Scan(&object); err != nil {
		log.Fatal(err)
	}
	archived, err := outbox.ReadArchived(ctx, archive, object)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range archived.Records() {
		fmt.Println(r.State, r.AggregateType, r.AggregateID, r.Type)
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		restored, skipped, err := store.Restore(ctx, tx, archived)
		fmt.Println(restored, "restored,", skipped, "were there")
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 archived and deleted
	// published order 42 OrderPaid
	// 1 restored, 0 were there
}
