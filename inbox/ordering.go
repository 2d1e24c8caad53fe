package inbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
)

// Ordering says what messages of one key wait for.
type Ordering int

const (
	// PerKey handles messages of a key one after another in this process, in order.
	// One that is stored for a later attempt, or dead, lets its key go on.
	PerKey Ordering = iota

	// Strict has messages of a key take effect one after another in the order
	// received, also past failures. What follows one that is stored or dead waits
	// in the inbox behind it, until that one is handled, replayed or discarded.
	// Other keys go on.
	//
	// It needs a source that gives one key to one process at a time: Kafka does,
	// RabbitMQ where the queue has a single active consumer or is consumed
	// exclusively. And it needs READ COMMITTED: who takes a message out of the
	// inbox must see what came behind it meanwhile.
	Strict

	// ViaInbox stores all messages first and handles them in the order stored, as
	// strictly as with Strict. For sources that want their answer at once.
	ViaInbox
)

var orderingNames = [...]string{PerKey: "per_key", Strict: "strict", ViaInbox: "via_inbox"}

// String returns the ordering's name.
func (o Ordering) String() string {
	if o >= 0 && int(o) < len(orderingNames) {
		return orderingNames[o]
	}
	return "unknown"
}

// ordered reports whether the message keeps its place in its key whatever
// happens to it.
func (in *Inbox) ordered(t *task) bool {
	return in.cfg.Ordering != PerKey && len(t.msg.Key) > 0
}

// keyHash stands for a key in the inbox. NULL: no key.
func keyHash(key []byte) pgtype.Int8 {
	if len(key) == 0 {
		return pgtype.Int8{}
	}
	return pgtype.Int8{Int64: number(dedup.HashID([]byte("key"), key)), Valid: true}
}

// lockNumber is what whoever stores a message of a key, or takes one out, locks.
func lockNumber(consumerID int32, key pgtype.Int8) int64 {
	var parts [12]byte
	binary.BigEndian.PutUint32(parts[:], uint32(consumerID)) //nolint:gosec // the bits, not the value
	binary.BigEndian.PutUint64(parts[4:], uint64(key.Int64)) //nolint:gosec // likewise
	return number(dedup.HashID([]byte("inbox key"), parts[:]))
}

func number(id dedup.ID) int64 {
	return int64(binary.BigEndian.Uint64(id[:8])) //nolint:gosec // the bits, not the value
}

// queueTurn queues the look at whether the message must wait for others of its
// key, behind its claim.
func (in *Inbox) queueTurn(b *pgx.Batch, t *task) {
	t.waits = false
	b.Queue(in.rows.behind, in.consumerID, keyHash(t.msg.Key), turn(t)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			t.waits = true
		}
		return rows.Err()
	})
}

// queueLock queues the lock of a key on b.
func (q *queries) queueLock(b *pgx.Batch, consumerID int32, key pgtype.Int8) {
	b.Queue(q.lock, lockNumber(consumerID, key))
}

// ErrUnordered is returned by [Inbox.Run] when ordering [Strict] is asked for and
// the source does not keep the order of a key.
var ErrUnordered = errors.New("source does not keep the order of a key")

// checkOrder refuses a source that cannot keep the order that was asked for.
func (in *Inbox) checkOrder(src handler.Source) error {
	if in.cfg.Ordering != Strict {
		return nil
	}
	ordered, ok := src.(handler.OrderedSource)
	if !ok {
		return fmt.Errorf("%w: ordering %s was asked for, and %T has no KeepsOrder (handler.OrderedSource)", ErrUnordered, Strict, src)
	}
	if err := ordered.KeepsOrder(); err != nil {
		return fmt.Errorf("%w: ordering %s was asked for: %w", ErrUnordered, Strict, err)
	}
	return nil
}

// ErrIsolation is returned at start when messages of a key are to keep their order
// and transactions do not see what others commit meanwhile.
var ErrIsolation = errors.New("transactions are not READ COMMITTED")

// checkIsolation finds out what isolation the handlers' transactions have, by
// whatever set it.
func (in *Inbox) checkIsolation(ctx context.Context) error {
	if in.cfg.Ordering == PerKey {
		return nil
	}
	var level string
	err := pgx.BeginTxFunc(ctx, in.pool, in.cfg.TxOptions, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT current_setting('transaction_isolation')`, pgx.QueryExecModeExec).Scan(&level)
	})
	switch {
	case err != nil:
		return fmt.Errorf("look at the isolation of transactions: %w", in.explainPooler(err))
	case level != string(pgx.ReadCommitted):
		return fmt.Errorf("%w but %q, and ordering %s was asked for: who takes a message out of the inbox must see what came behind it; set TxOptions.IsoLevel to pgx.ReadCommitted and take row locks where a handler needs more",
			ErrIsolation, level, in.cfg.Ordering)
	}
	return nil
}
