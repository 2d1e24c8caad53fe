package dedup_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/dedup"
)

// The claim and the effect in a transaction of one's own.
func ExampleClaim() {
	var pool *pgxpool.Pool // of the service
	ctx, id, order := context.Background(), "evt_1", 42

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		claimed, err := dedup.Claim(ctx, tx, "shipping", id)
		if err != nil || !claimed {
			return err // nil: a duplicate, its effect is committed
		}
		_, err = tx.Exec(ctx, `UPDATE orders SET status = 'PAID' WHERE id = $1`, order)
		return err
	})
	if err != nil {
		log.Print(err) // not handled: it must come again
	}
}

// The same with database/sql and any PostgreSQL driver.
func ExampleClaimSQL() {
	book := func(ctx context.Context, tx *sql.Tx, id string, order int) error {
		claimed, err := dedup.ClaimSQL(ctx, tx, "shipping", id)
		if err != nil || !claimed {
			return err // nil: a duplicate, its effect is committed
		}
		_, err = tx.ExecContext(ctx, `UPDATE orders SET status = 'PAID' WHERE id = $1`, order)
		return err
	}

	var db *sql.DB // of the service
	ctx := context.Background()
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		err = book(ctx, tx, "evt_1", 42)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		log.Print(err) // and roll back, so that it can come again
	}
}

// A UUID is stored as it is, any other id as the hash of its text. The SQL
// function semel.message_id says the same.
func ExampleMessageID() {
	fmt.Println(dedup.MessageID("0190b6a5-7f3e-7cc1-9d5b-4a4d3f0e2b11"))
	fmt.Println(dedup.MessageID("evt_1"))
	// Output:
	// 0190b6a5-7f3e-7cc1-9d5b-4a4d3f0e2b11
	// 130d007a-93ee-8789-b54c-e4978834551d
}

// An id that cannot identify anything is refused, and the error says why.
func ExampleCheckID() {
	fmt.Println(dedup.CheckID("evt_1"))
	fmt.Println(dedup.CheckID(""))
	fmt.Println(dedup.CheckID(" \t"))
	// Output:
	// <nil>
	// unusable message id: it is empty
	// unusable message id: it is only white space: " \t"
}
