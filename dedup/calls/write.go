package calls

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/handler"
)

// maxError bounds the text of an error in the ledger, in bytes.
const maxError = 2000

func newOwner() (pgtype.UUID, error) {
	u := pgtype.UUID{Valid: true}
	_, err := rand.Read(u.Bytes[:])
	return u, err
}

// take takes the row of a call, or finds out why it cannot.
func (l *Ledger) take(ctx context.Context, db querier, t *try) error {
	l.trace(ctx, BeforeIntent, t.call)
	bounded, cancel := l.bounded(ctx)
	defer cancel()
	var ends pgtype.Interval // NULL: nothing is sent before the provider was asked
	if !t.opts.AskFirst {
		ends = interval(t.opts.Timeout + l.cfg.Grace)
	}
	var (
		outcome, state       pgtype.Int2
		taken                pgtype.Bool
		generation, attempts pgtype.Int4
		epoch                pgtype.Int8
		key                  pgtype.Text
		sentFirst, deadline  pgtype.Timestamptz
	)
	args := []any{t.consumerID, t.call.MessageID, t.call.Step, t.text, t.owner, interval(t.lease), ends, t.call.Key}
	err := l.begin(bounded, db, t, l.q.take, args,
		&outcome, &t.now, &taken, &state, &generation, &epoch, &attempts, &key, &sentFirst, &deadline,
		&t.stored.result, &t.stored.codec, &t.stored.lost)
	if err != nil {
		return handler.Outage(fmt.Errorf("take %s: %w", t.call.name(), err))
	}
	if outcome.Valid {
		o := handler.Outcome(outcome.Int16)
		t.stored.settled = o != handler.Stored && o != handler.Dead
	}
	t.stored.found = state.Valid
	if t.stored.found {
		t.call.Generation, t.call.Attempt, t.call.Key = int(generation.Int32), int(attempts.Int32), key.String
		t.call.SentFirst, t.call.Deadline = timeOf(sentFirst), timeOf(deadline)
		t.generation = t.call.Generation
		t.before = standing{State(state.Int16), sentFirst, deadline}
	}
	t.epoch, t.taken, t.held = epoch.Int64, taken.Bool, taken.Bool
	t.fresh = t.taken && t.epoch == 1
	t.back = t.before
	if t.fresh && !t.opts.AskFirst {
		t.before = standing{state: Ready} // before this attempt nothing was sent
	}
	return nil
}

// intend commits that a call will be made whose row is older. It reports false if
// the row is in somebody else's hand, or could be.
func (l *Ledger) intend(ctx context.Context, db querier, t *try) (ours bool, err error) {
	if t.call.Generation == t.generation {
		t.call.Key = keyAgain(t.call)
	}
	l.trace(ctx, BeforeIntent, t.call)
	bounded, cancel := l.bounded(ctx)
	defer cancel()
	var sentFirst, deadline pgtype.Timestamptz
	args := []any{
		t.consumerID, t.call.MessageID, t.call.Step, t.owner, t.epoch,
		t.call.Generation, t.call.Key, interval(t.lease), interval(t.opts.Timeout + l.cfg.Grace),
	}
	err = l.begin(bounded, db, t, l.q.intend, args, &t.call.Attempt, &sentFirst, &deadline)
	switch {
	case err == pgx.ErrNoRows: //nolint:errorlint // as the row returns it
		return false, nil
	case err != nil:
		return false, handler.Outage(fmt.Errorf("note that %s will be made: %w", t.call.name(), err))
	}
	t.call.SentFirst, t.call.Deadline = timeOf(sentFirst), timeOf(deadline)
	t.back = standing{Started, sentFirst, deadline}
	return true, nil
}

// begin sends a statement from which the time of a try runs. The wait for a connection
// is not part of that.
func (l *Ledger) begin(ctx context.Context, db querier, t *try, sql string, args []any, targets ...any) error {
	if db == querier(l.pool) {
		conn, err := l.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		db = conn
	}
	t.began = time.Now()
	return db.QueryRow(ctx, sql, args...).Scan(targets...)
}

// giveBack lets others have the call, as it stands. It reports false if they have it
// already.
func (l *Ledger) giveBack(ctx context.Context, t *try, s standing, cause error) (ours bool, err error) {
	t.held = false
	bounded, cancel := l.bounded(ctx)
	defer cancel()
	tag, err := l.pool.Exec(bounded, l.q.giveBack, t.consumerID, t.call.MessageID, t.call.Step, t.owner, t.epoch,
		int16(s.state), s.sentFirst, s.deadline, errorText(cause))
	if err != nil {
		return false, handler.Outage(fmt.Errorf("give back %s: %w", t.call.name(), err))
	}
	return tag.RowsAffected() == 1, nil
}

// letGo is for a try that a panic ends, or an error before anything was told.
func (l *Ledger) letGo(ctx context.Context, t *try) {
	if t.held {
		_, _ = l.giveBack(ctx, t, t.back, nil) // else the lease runs out
	}
}

// finish writes the result of a call that is done. It reports false if the ledger
// knows better.
func (l *Ledger) finish(ctx context.Context, t *try, s stored) (written bool, err error) {
	bounded, cancel := l.bounded(ctx)
	defer cancel()
	tag, err := l.pool.Exec(bounded, l.q.finish, t.consumerID, t.call.MessageID, t.call.Step, t.call.Generation,
		s.result, s.codec, s.lost, t.owner, t.epoch)
	if err != nil {
		return false, handler.Outage(fmt.Errorf("write the result of %s: %w", t.call.name(), err))
	}
	return tag.RowsAffected() == 1, nil
}

func interval(d time.Duration) pgtype.Interval {
	return pgtype.Interval{Microseconds: d.Microseconds(), Valid: true}
}

// errorText is err as the ledger shows it to people; NULL: there is none.
func errorText(err error) pgtype.Text {
	if err == nil {
		return pgtype.Text{}
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "") + "..."
	}
	return pgtype.Text{String: text, Valid: true}
}
