package dlq_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/exampledb"
)

// A month after it was resolved a dead letter loses its payload; after three
// months it goes.
func ExampleStore_Purge() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	var store dlq.Store
	var id int64
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		id, _, err = store.Add(ctx, tx, &dlq.Letter{
			ConsumerID: dedup.ConsumerID("shipping"), MessageID: dedup.MessageID("evt_1"),
			Reason: dlq.Exhausted, Message: &handler.Message{ID: "evt_1", Payload: []byte("4111 1111 1111 1111")},
		})
		if err != nil {
			return err
		}
		if _, err := store.Resolve(ctx, tx, id); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE semel.dead_letters SET resolved_at = now() - interval '40 days'`) // time passes
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	const day = 24 * time.Hour
	purged, err := store.Purge(ctx, pool, dlq.PurgeConfig{MaxAge: 90 * day, RedactAfter: 30 * day})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(purged.Deleted, "deleted,", purged.Redacted, "redacted")

	letter, err := store.Load(ctx, pool, id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(letter.Message.ID, letter.State, len(letter.Message.Payload))
	// Output:
	// 0 deleted, 1 redacted
	// evt_1 resolved 0
}
