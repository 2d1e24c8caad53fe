package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/jitter"
	"github.com/semel-go/semel/internal/msgrow"
)

// mostKeys bounds the keys that one transaction locks: the server's table of locks
// is small.
const mostKeys = 500

// StoreAll does what [Inbox.Store] does with many messages, in their order: an
// import, or a provider that sends lists. It returns an outcome for each. They are
// stored in one transaction, or in several of 500 messages where keys keep their
// order.
//
// After an error nothing is known of them, and all must come again: what was
// stored is a duplicate then.
func (in *Inbox) StoreAll(ctx context.Context, msgs []*handler.Message) ([]handler.Outcome, error) {
	if slices.Contains(msgs, nil) {
		return nil, fmt.Errorf("store %d messages for consumer %q: %w", len(msgs), in.consumer, errBadMessage)
	}
	if err := in.start(ctx); err != nil {
		return nil, err
	}
	outcomes, err := in.storeAll(ctx, msgs)
	if err != nil {
		return nil, fmt.Errorf("store %d messages for consumer %q: %w", len(msgs), in.consumer, err)
	}
	for _, o := range outcomes {
		in.counters.outcomes[o].Add(1)
	}
	return outcomes, nil
}

func (in *Inbox) storeAll(ctx context.Context, msgs []*handler.Message) ([]handler.Outcome, error) {
	outcomes := make([]handler.Outcome, len(msgs))
	tasks := make([]*task, len(msgs))
	for i, msg := range msgs {
		t := &task{msg: msg, later: &postponement{}}
		switch v := in.identify(ctx, t); v.kind {
		case stopped:
			return nil, v.err
		case permanent:
			in.bury(t, reasonOf(v.err), v.err)
		}
		tasks[i] = t
	}
	size := len(tasks)
	if in.cfg.Ordering != PerKey {
		size = mostKeys
	}
	for from, to := 0, 0; from < len(tasks); from = to {
		for to < len(tasks) && to-from < size && tasks[to].buried == nil {
			to++
		}
		if err := in.storeBulk(ctx, tasks[from:to], outcomes[from:to]); err != nil {
			return nil, err
		}
		if to == from || to < len(tasks) && tasks[to].buried != nil {
			to++ // it takes its place behind those before it
		}
		for i := from; i < to; i++ { // what must be looked at one by one
			if outcomes[i] != 0 {
				continue
			}
			var err error
			if outcomes[i], err = in.storeUntilSettled(ctx, tasks[i]); err != nil {
				return nil, err
			}
		}
	}
	return outcomes, nil
}

// storeBulk stores all that is nothing but new, or a duplicate, and says so in
// outcomes.
func (in *Inbox) storeBulk(ctx context.Context, tasks []*task, outcomes []handler.Outcome) error {
	if len(tasks) == 0 {
		return nil
	}
	if err := in.checkRoom(ctx); err != nil {
		return err
	}
	if err := in.encodeAll(ctx, tasks); err != nil {
		return err
	}
	patience := jitter.New(in.cfg.QuickDelay, in.cfg.QuickMaxDelay)
	for tries := 1; ; tries++ {
		err := pgx.BeginTxFunc(ctx, in.pool, decisionTx, func(tx pgx.Tx) error {
			return in.storeBulkTx(ctx, tx, tasks, outcomes)
		})
		if err == nil {
			in.wakeWorker()
			return nil
		}
		clear(outcomes)
		v := in.judgeClaim(ctx, err)
		switch {
		case errors.Is(err, ErrFull):
			return err
		case v.kind == stopped:
			return v.err
		case v.kind == permanent: // the database refuses one of them: which, they tell one by one
			return nil
		case tries > in.cfg.QuickAttempts:
			return fmt.Errorf("%w: %w", ErrOutage, err)
		}
		timer := time.NewTimer(patience.NextBackOff())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

func (in *Inbox) storeBulkTx(ctx context.Context, tx pgx.Tx, tasks []*task, outcomes []handler.Outcome) error {
	if _, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', $1, true)`, in.limits.Lock()); err != nil {
		return err
	}
	claimed, err := in.claimMany(ctx, tx, tasks, outcomes)
	if err != nil || len(claimed) == 0 {
		return err
	}
	ends, now, err := in.lockKeys(ctx, tx, claimed)
	if err != nil {
		return err
	}
	columns := storedColumns()
	_, err = tx.CopyFrom(ctx, pgx.Identifier{in.cfg.Schema, "inbox_messages"}, columns, pgx.CopyFromSlice(len(claimed), func(i int) ([]any, error) {
		return in.copiedRow(claimed[i], ends, now)
	}))
	if err != nil {
		return fmt.Errorf("copy into the inbox: %w", err)
	}
	return nil
}

// claimMany claims what is to be stored, and returns that in its order. The
// others have their outcome, or are left to be looked at one by one.
func (in *Inbox) claimMany(ctx context.Context, tx pgx.Tx, tasks []*task, outcomes []handler.Outcome) ([]*task, error) {
	entries := make([]dedup.Entry, 0, len(tasks))
	ids := make([]dedup.ID, 0, len(tasks))
	for _, t := range tasks {
		if t.buried == nil {
			entries = append(entries, t.entry(in.consumerID, handler.Stored))
			ids = append(ids, t.identity.id)
		}
	}
	won, err := in.store.ClaimMany(ctx, tx, in.consumerID, entries, handler.Stored)
	if err != nil {
		return nil, err
	}
	seen := map[dedup.ID]dedup.Seen{}
	if len(won) < len(entries) {
		if seen, err = in.store.SeenMany(ctx, tx, in.consumerID, ids); err != nil {
			return nil, err
		}
	}
	claimed := make([]*task, 0, len(won))
	for i, t := range tasks {
		if t.buried != nil {
			continue
		}
		if _, first := won[t.identity.id]; first {
			delete(won, t.identity.id) // a copy of it behind it is one
			claimed, outcomes[i] = append(claimed, t), handler.Stored
		} else if !seen[t.identity.id].Differs(t.identity.fingerprint) {
			outcomes[i] = handler.Duplicate
		}
	}
	return claimed, nil
}

// keyEnd is where a key's messages in the inbox end.
type keyEnd struct {
	last, first int64
	waits       bool // there are some
}

// lockKeys locks the keys of tasks, in one order for all who do, and looks what
// they hold.
func (in *Inbox) lockKeys(ctx context.Context, tx pgx.Tx, tasks []*task) (map[int64]*keyEnd, time.Time, error) {
	ends := map[int64]*keyEnd{}
	for _, t := range tasks {
		if in.ordered(t) {
			ends[keyHash(t.msg.Key).Int64] = &keyEnd{}
		}
	}
	keys := slices.Collect(maps.Keys(ends))
	numbers := make([]int64, len(keys))
	for i, key := range keys {
		numbers[i] = lockNumber(in.consumerID, pgtype.Int8{Int64: key, Valid: true})
	}
	slices.Sort(numbers)
	var now time.Time
	b := &pgx.Batch{}
	b.Queue(in.rows.lockMany, numbers)
	b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	b.Queue(in.rows.ends, in.consumerID, keys).Query(func(rows pgx.Rows) error {
		var key, last, first int64
		_, err := pgx.ForEachRow(rows, []any{&key, &last, &first}, func() error {
			*ends[key] = keyEnd{last: last, first: first, waits: true}
			return nil
		})
		return err
	})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, now, fmt.Errorf("lock %d keys: %w", len(keys), err)
	}
	return ends, now, nil
}

// storedColumns are the columns of [Inbox.copiedRow].
func storedColumns() []string {
	return append([]string{"consumer_id", "key_hash", "message_id", "fingerprint", "ready_at", "place"}, msgrow.Columns()...)
}

func (in *Inbox) copiedRow(t *task, ends map[int64]*keyEnd, now time.Time) ([]any, error) {
	key := keyHash(t.msg.Key)
	ready := pgtype.Timestamptz{Time: now, Valid: true}
	var place pgtype.Int8
	if in.ordered(t) {
		end := ends[key.Int64]
		if end.waits {
			ready.Valid = false // behind it
		} else {
			end.first = 1
		}
		if most := int64(in.cfg.MaxStoredPerKey); most > 0 && end.last-end.first+1 >= most {
			return nil, in.tooManyOfKey(t)
		}
		end.last++
		end.waits = true
		place = pgtype.Int8{Int64: end.last, Valid: true}
	}
	var a msgrow.Alterations
	return append([]any{in.consumerID, key, t.identity.id, t.identity.fingerprint, ready, place}, a.Values(t.msg, t.later.payload)...), nil
}
