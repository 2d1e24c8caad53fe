package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// DB is what the decisions of a person are written through: a pool or a
// connection.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// decisionTx sees what others have stored behind a message meanwhile.
var decisionTx = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// decisionLimits keep a decision from waiting for ever for a handler that runs.
var decisionLimits = dedup.NewLimits(5*time.Second, time.Minute)

// Replay has the message of a dead letter handled again, by whatever process
// works the inbox of its consumer: in the place that it kept in its key, or at its
// end. By is who decided it. One that is being replayed already is left as it is, if
// its message waits in the inbox: somebody may have deleted it there.
//
// The error wraps [ErrNoDeadLetter] or [ErrRedacted] where that is why.
func (s Store) Replay(ctx context.Context, db DB, id int64, by string) error {
	_, err := s.replay(ctx, db, id, by)
	return err
}

// replay also returns under what the message is claimed again.
func (s Store) replay(ctx context.Context, db DB, id int64, by string) (claimed dedup.ID, err error) {
	err = s.decide(ctx, db, id, "replay", func(ctx context.Context, letter *dlq.Letter) error {
		claimed = replayID(letter)
		switch letter.State {
		case dlq.Replaying:
			if waiting, err := s.waits(ctx, db, letter); waiting || err != nil {
				return err
			}
		case dlq.Discarded:
			return fmt.Errorf("%w: it is discarded, and only reopening it makes it a message again", ErrNoDeadLetter)
		}
		return s.enqueue(ctx, db, letter, by, nil, 0)
	})
	return claimed, err
}

// IsReplaying reports whether the message of a dead letter is in the inbox, so that
// somebody handles it again. A letter that says so ([dlq.Replaying]) may be wrong:
// somebody may have deleted its message there, and [Store.Replay] puts it back.
func (s Store) IsReplaying(ctx context.Context, db DB, letter *dlq.Letter) (bool, error) {
	if letter.State != dlq.Replaying {
		return false, nil
	}
	waiting, err := s.waits(ctx, db, letter)
	if err != nil {
		return false, fmt.Errorf("look for the message of dead letter %d in the inbox: %w", letter.ID, err)
	}
	return waiting, nil
}

// waits reports whether the message of a dead letter is in the inbox.
func (s Store) waits(ctx context.Context, db DB, letter *dlq.Letter) (bool, error) {
	rows, err := db.Query(ctx, s.tables().rows.isWaiting, letter.ConsumerID, pgtype.UUID{Bytes: replayID(letter), Valid: true})
	if err != nil {
		return false, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
}

// Discard decides that a dead message is never handled. The next of its key may
// run. The error wraps [ErrNoDeadLetter] where a replay was faster, or another
// decision.
func (s Store) Discard(ctx context.Context, db DB, id int64, by string) error {
	return s.decide(ctx, db, id, "discard", func(ctx context.Context, letter *dlq.Letter) error {
		if letter.State != dlq.Open && letter.State != dlq.Replaying {
			return fmt.Errorf("%w: it is %s", ErrNoDeadLetter, letter.State)
		}
		return pgx.BeginTxFunc(ctx, db, decisionTx, func(tx pgx.Tx) error {
			claimed, err := s.claim(ctx, tx, letter, handler.Skipped)
			if err != nil {
				return err
			}
			if !claimed {
				return fmt.Errorf("%w: a replay was faster", ErrNoDeadLetter)
			}
			t := s.tables()
			b := &pgx.Batch{}
			key := keyHash(letter.Message.Key)
			if key.Valid {
				t.rows.queueLock(b, letter.ConsumerID, key)
			}
			b.Queue(t.rows.remove, letter.ConsumerID, replayID(letter), nil)
			if key.Valid {
				b.Queue(t.rows.goOn, letter.ConsumerID, key)
			}
			b.Queue(t.rows.journalForget, letter.ConsumerID, replayID(letter))
			noted := s.queueNote(b, letter.ID, dlq.Discarded, by, dlq.Open, dlq.Replaying)
			if err := tx.SendBatch(ctx, b).Close(); err != nil {
				return err
			}
			return noted()
		})
	})
}

// Reopen makes a discarded dead letter a new message, at the end of its key.
func (s Store) Reopen(ctx context.Context, db DB, id int64, by string) error {
	return s.decide(ctx, db, id, "reopen", func(ctx context.Context, letter *dlq.Letter) error {
		if letter.State != dlq.Discarded {
			return fmt.Errorf("%w: it is %s, not discarded", ErrNoDeadLetter, letter.State)
		}
		return s.enqueue(ctx, db, letter, by, nil, 0)
	})
}

// decide loads a dead letter and decides about it.
func (s Store) decide(ctx context.Context, db DB, id int64, what string, f func(context.Context, *dlq.Letter) error) error {
	letter, err := s.tables().letters.Load(ctx, db, id)
	if errors.Is(err, dlq.ErrNotFound) {
		err = fmt.Errorf("%w: there is none with this id", ErrNoDeadLetter)
	}
	if err == nil {
		err = f(ctx, letter)
	}
	if err != nil {
		return fmt.Errorf("%s dead letter %d: %w", what, id, err)
	}
	return nil
}

// enqueue puts the message of a dead letter into the inbox, in one transaction
// with the letter's new state, replaying. Held, if not nil, is to be held for lease.
func (s Store) enqueue(ctx context.Context, db DB, letter *dlq.Letter, by string, held *stored, lease time.Duration) error {
	from := []dlq.State{dlq.Open, dlq.Replaying}
	reopens := letter.State == dlq.Discarded && held == nil
	switch {
	case reopens:
		from = []dlq.State{dlq.Discarded}
	case letter.State != dlq.Open && letter.State != dlq.Replaying:
		return fmt.Errorf("%w: it is %s", ErrNoDeadLetter, letter.State)
	}
	if !letter.RedactedAt.IsZero() {
		return ErrRedacted
	}
	return pgx.BeginTxFunc(ctx, db, decisionTx, func(tx pgx.Tx) error {
		if reopens {
			reopened, err := s.tables().claims.Reopen(ctx, tx, entryOf(letter, handler.Stored))
			if err != nil {
				return err
			}
			if !reopened {
				return fmt.Errorf("%w: its message was handled all the same", ErrNoDeadLetter)
			}
		}
		t := s.tables()
		key, id := keyHash(letter.Message.Key), replayID(letter)
		var owner pgtype.UUID
		var seq int64
		if held != nil {
			owner = held.owner
		}
		b := &pgx.Batch{}
		if key.Valid {
			t.rows.queueLock(b, letter.ConsumerID, key)
		}
		b.Queue(t.rows.enqueue, letter.ConsumerID, id, key, letter.Message.Key, letter.ID, owner, interval(lease)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&seq) })
		b.Queue(t.rows.journalForget, letter.ConsumerID, id)
		noted := s.queueNote(b, letter.ID, dlq.Replaying, by, from...)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if held != nil {
			held.seq = seq
		}
		return noted()
	})
}

// claim takes the message's row over from whoever left it stored or dead. It
// waits for a handler that runs, and reports false if that settles it.
func (s Store) claim(ctx context.Context, tx pgx.Tx, letter *dlq.Letter, outcome handler.Outcome) (bool, error) {
	b := &pgx.Batch{}
	b.Queue("SELECT") // where the claims of the engine have their BEGIN
	entries := [...]dedup.Entry{entryOf(letter, outcome)}
	s.tables().claims.QueueClaim(b, entries[:], true, decisionLimits)
	var claimed [len(entries)]bool
	if err := dedup.ReadClaim(tx.SendBatch(ctx, b), claimed[:]); err != nil {
		if sqlState(err) == codeLockTimeout {
			err = fmt.Errorf("its message is being handled at this moment, look again when that is over: %w", err)
		}
		return false, err
	}
	return claimed[0], nil
}

// entryOf is the row under which the message of a dead letter is claimed again.
func entryOf(letter *dlq.Letter, outcome handler.Outcome) dedup.Entry {
	return dedup.Entry{
		ConsumerID: letter.ConsumerID, MessageID: replayID(letter), Fingerprint: letterFingerprint(letter),
		Text: replayText(letter), Outcome: outcome,
	}
}

// queueNote queues what writes the decision into the letter. Noted says, once b was
// sent, whether it did.
func (s Store) queueNote(b *pgx.Batch, id int64, state dlq.State, by string, from ...dlq.State) (noted func() error) {
	states := make([]string, len(from))
	for i := range from {
		states[i] = string(from[i])
	}
	err := fmt.Errorf("%w: it was settled, or decided about, at this moment", ErrNoDeadLetter)
	b.Queue(s.tables().rows.decideLetter, id, string(state), by, states).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() > 0 {
			err = nil
		}
		return nil
	})
	return func() error { return err }
}
