package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/bench/byhand"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// manyWriters is how many there are where it is about getting in each other's way.
const manyWriters = 32

// outboxWrite compares Write with the same row inserted by hand, each in a
// transaction that does nothing else.
func (b *bench) outboxWrite(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	hand := db.inTransaction(func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		return byhand.Write(ctx, tx, aggregateType, msg)
	})
	return b.sameLoad(ctx, workers, fresh, db.writeEvent(), hand)
}

// writeEvent writes one event in a transaction of its own.
func (db *database) writeEvent() handleFunc {
	w := outbox.NewWriter(db.schema)
	return db.inTransaction(func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		return w.Write(ctx, tx, outbox.Event{
			ID: msg.ID, AggregateType: aggregateType, AggregateID: string(msg.Key), Type: msg.Type, Payload: msg.Payload,
		})
	})
}

func (db *database) inTransaction(f handler.Func) handleFunc {
	return func(ctx context.Context, msg *handler.Message) error {
		return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error { return f(ctx, tx, msg) })
	}
}

// notifyTax compares writers who wake the relays after each commit with writers
// who do not. The relays run all the while, so that somebody listens.
func (b *bench) notifyTax(ctx context.Context) (r result, err error) {
	db, err := newDatabase(ctx, manyWriters)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	pool, err := newPool(ctx, db.schema, fleetConns, nil)
	if err != nil {
		return result{}, err
	}
	defer pool.Close()
	f, err := db.startFleet(ctx, pool, batch, nulls())
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, f.end()) }()
	f.open()

	n := outbox.NewNotifier(pool, db.schema)
	f.group.Go(func() error { return n.Run(f.run) })
	off := db.writeEvent()
	on := func(ctx context.Context, msg *handler.Message) error {
		err := off(ctx, msg)
		n.Wake()
		return err
	}
	writing := func(handle handleFunc) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) { return rate(ctx, manyWriters, b.round, fresh, handle) }
	}
	if _, err := rate(f.run, manyWriters, min(b.round, time.Second), fresh, on); err != nil {
		return result{}, fmt.Errorf("warm up: %w", err)
	}
	r, err = b.pairs(f.run, side{"on", writing(on)}, side{"off", writing(off)})
	r.details = append(r.details, fmt.Sprintf("%d writers, %d relays listen", manyWriters, instances))
	return r, err
}

// relayWriters compares how long writers wait while relays publish what they
// write with how long they wait when nobody does.
func (b *bench) relayWriters(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, manyWriters)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	pool, err := newPool(ctx, db.schema, fleetConns, nil)
	if err != nil {
		return result{}, err
	}
	defer pool.Close()
	write := db.writeEvent()
	if _, err := rate(ctx, manyWriters, min(b.round, time.Second), fresh, write); err != nil {
		return result{}, fmt.Errorf("warm up: %w", err)
	}

	var published []float64 // share of what was written
	alone := func(ctx context.Context) (float64, error) {
		if err := db.exec(ctx, `TRUNCATE outbox`); err != nil {
			return 0, err
		}
		return p99Of(ctx, manyWriters, b.round, write)
	}
	relayed := func(ctx context.Context) (p99 float64, err error) {
		if err := db.exec(ctx, `TRUNCATE outbox`); err != nil {
			return 0, err
		}
		f, err := db.startFleet(ctx, pool, batch, nulls())
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, f.end()) }()
		f.open()
		if p99, err = p99Of(f.run, manyWriters, b.round, write); err != nil {
			return 0, err
		}
		sent := float64(f.sent())
		var written float64
		if err := db.pool.QueryRow(ctx, `SELECT count(*)::float8 FROM outbox`).Scan(&written); err != nil {
			return 0, fmt.Errorf("count what was written: %w", err)
		}
		published = append(published, sent/written)
		return p99, nil
	}
	r, err := b.compare(ctx, ratio("%.2f ms"), side{"with relays", relayed}, side{"without", alone})
	if err != nil {
		return result{}, err
	}
	r.details = append(r.details, fmt.Sprintf("p99 of a transaction that writes an event, %d writers at full speed, %d relays published %.0f %% of it meanwhile",
		manyWriters, instances, 100*median(published)))
	return r, nil
}
