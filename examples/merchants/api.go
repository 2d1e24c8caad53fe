package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// everyLost is how many first calls there are to one whose answer is lost.
const everyLost = 9

// configuration is what the configuration API is asked to make.
type configuration struct {
	MerchantID string `json:"merchant_id"`
}

// api is the configuration API: somebody else's. It remembers idempotency
// keys; a call without one makes a configuration each time. Now and then a call
// does its work and its answer is lost.
type api struct {
	pool   *pgxpool.Pool
	firsts atomic.Int64
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c configuration
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&c); err != nil || c.MerchantID == "" {
		http.Error(w, "name a merchant_id", http.StatusBadRequest)
		return
	}
	first, err := a.configure(r.Context(), c, r.Header.Get("Idempotency-Key"))
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	if first && a.firsts.Add(1)%everyLost == 0 {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	w.WriteHeader(http.StatusCreated)
}

// configure makes a configuration, unless the key was seen before.
func (a *api) configure(ctx context.Context, c configuration, key string) (first bool, err error) {
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		first = true
		if key != "" {
			var calls int
			if err := tx.QueryRow(ctx, `
				INSERT INTO idempotency_keys AS k (key, calls)
				VALUES ($1, 1)
				ON CONFLICT (key) DO UPDATE
				SET calls = k.calls + 1
				RETURNING calls`, key).Scan(&calls); err != nil {
				return err
			}
			first = calls == 1
		}
		if !first {
			return nil
		}
		_, err := tx.Exec(ctx, `INSERT INTO configurations (merchant_id) VALUES ($1)`, c.MerchantID)
		return err
	})
	return first, err
}
