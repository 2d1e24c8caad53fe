package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
)

// allocsMessages is over how many messages allocations are counted.
const allocsMessages = 5000

// allocs counts what the engine allocates itself: Process, minus the same
// statements in the same round trips by pgx alone.
func (b *bench) allocs(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, 1)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	in, err := db.inbox(db.pool, "bench", work, nil)
	if err != nil {
		return result{}, err
	}
	engine := expect(handler.Processed, in.Process)
	bare := (&bareSequence{pool: db.pool, claim: claimStatement(db.schema)}).handle

	for _, handle := range []handleFunc{engine, bare} { // prepares the statements
		if _, err := allocsPerMessage(ctx, 100, handle); err != nil {
			return result{}, fmt.Errorf("warm up: %w", err)
		}
	}
	var own, engines, bares []float64
	for range b.rounds {
		e, err := allocsPerMessage(ctx, allocsMessages, engine)
		if err != nil {
			return result{}, err
		}
		p, err := allocsPerMessage(ctx, allocsMessages, bare)
		if err != nil {
			return result{}, err
		}
		own, engines, bares = append(own, e-p), append(engines, e), append(bares, p)
	}
	return result{
		value: median(own), digits: 1,
		details: []string{
			fmt.Sprintf("min %.1f, max %.1f of %d pairs", slices.Min(own), slices.Max(own), len(own)),
			fmt.Sprintf("[Process %.1f, the bare pgx sequence %.1f per message]", median(engines), median(bares)),
		},
	}, nil
}

// allocsPerMessage counts what is allocated while n messages are handled one
// after the other. The messages are made before.
func allocsPerMessage(ctx context.Context, n int, handle handleFunc) (float64, error) {
	msgs := newMessages(n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, msg := range msgs {
		if err := handle(ctx, msg); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), nil
}

// bareSequence does in pgx what the engine sends: BEGIN with the claim, the
// work, COMMIT. Nothing is judged, guarded or compared.
type bareSequence struct {
	pool  *pgxpool.Pool
	claim string
}

// Arguments of the claim that are the same for every message.
var (
	bareConsumer    = dedup.ConsumerID("bench")
	bareFingerprint = pgtype.Int8{Int64: 1, Valid: true}
	bareOutcome     = int16(handler.Processed)
)

func (s *bareSequence) handle(ctx context.Context, msg *handler.Message) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{})
	id := dedup.MessageID(msg.ID)
	b.Queue(s.claim, bareConsumer, id, bareFingerprint, dedup.Text(msg.ID, id), bareOutcome, "2000", "35000")
	results := conn.Conn().SendBatch(ctx, b)
	tx := results.Tx()
	if err := results.Close(); err != nil {
		return err
	}
	if err := work(ctx, tx, msg); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// claimStatement is the engine's own claim.
func claimStatement(schemaName string) string {
	b := &pgx.Batch{}
	dedup.NewStore(schemaName).QueueClaim(b, make([]dedup.Entry, 1), false, dedup.NewLimits(time.Second, time.Second))
	return b.QueuedQueries[0].SQL
}
