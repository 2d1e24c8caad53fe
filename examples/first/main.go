// First is a consumer in one file. It is given one message twice and handles
// it once. The README says what it needs.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

type order struct {
	ID int64 `json:"id"`
}

// ship is the handler. Its writes and the record that the message was handled
// are one transaction: both commit or neither does.
func ship(ctx context.Context, tx pgx.Tx, o order, msg *handler.Message) error {
	_, err := tx.Exec(ctx, `INSERT INTO shipments (order_id) VALUES ($1)`, o.ID)
	return err
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	in, err := inbox.New(pool, "shipping", handler.JSON(ship), inbox.Config{})
	if err != nil {
		return err
	}
	for range 2 {
		outcome, err := in.Process(ctx, &handler.Message{ID: "evt_1", Payload: []byte(`{"id": 42}`)})
		if err != nil {
			return err
		}
		fmt.Println(outcome)
	}
	return nil
}
