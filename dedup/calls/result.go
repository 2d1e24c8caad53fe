package calls

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/msgrow"
)

// Result returns what the call of a step came to, as [Ledger.Do] has stored it. It is
// for the handler: tx is its transaction. The error wraps [ErrNotDone] if there is no
// such call, or if it is not done.
func (l *Ledger) Result(ctx context.Context, tx pgx.Tx, msg *handler.Message, step string) ([]byte, error) {
	cause := handler.CauseFrom(ctx)
	if cause == nil || cause.Consumer == "" {
		return nil, fmt.Errorf("result of call %.64q: its context is not that of a consumer's handler: hand on the one that the handler was given", step)
	}
	t := &try{consumerID: dedup.ConsumerID(cause.Consumer), call: Call{MessageID: messageID(cause, msg), Step: step}}
	s, state, err := l.load(ctx, tx, t)
	switch {
	case err != nil:
		return nil, err
	case !s.found:
		return nil, fmt.Errorf("result of %s: %w: it was not made", t.call.name(), ErrNotDone)
	case state != Done:
		return nil, fmt.Errorf("result of %s: %w: it is %s", t.call.name(), ErrNotDone, state)
	}
	result, err := s.decode(ctx, l.cfg.Codec)
	if err != nil {
		return nil, fmt.Errorf("result of %s: %w", t.call.name(), err)
	}
	return result, nil
}

// load reads how a call stands.
func (l *Ledger) load(ctx context.Context, db querier, t *try) (s stored, state State, err error) {
	err = db.QueryRow(ctx, l.q.result, t.consumerID, t.call.MessageID, t.call.Step).Scan(&state, &s.result, &s.codec, &s.lost)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return stored{}, 0, nil
	case err != nil:
		return stored{}, 0, handler.Outage(fmt.Errorf("read %s: %w", t.call.name(), err))
	}
	s.found = true
	return s, state, nil
}

// stored is what the ledger knows of a call that is not ours.
type stored struct {
	found   bool
	settled bool // its message is
	result  []byte
	codec   pgtype.Text // the key it is encoded under; NULL: it is not
	lost    pgtype.Text // why the result of a call that is done was not kept
}

func (s stored) decode(ctx context.Context, codec handler.Codec) ([]byte, error) {
	if s.lost.Valid {
		return nil, handler.Permanent(fmt.Errorf("%w: %s", ErrNotKept, s.lost.String))
	}
	return msgrow.Payload{Bytes: s.result, KeyID: s.codec.String, Encoded: s.codec.Valid}.Decode(ctx, codec)
}

// encoded is a result as it is to be stored. What cannot be stored is not kept: the
// call is done all the same.
func (l *Ledger) encoded(ctx context.Context, result []byte) (stored, error) {
	if len(result) > l.cfg.MaxResult {
		return stored{lost: errorText(fmt.Errorf("it has %d bytes, at most %d are allowed", len(result), l.cfg.MaxResult))}, nil
	}
	p, err := msgrow.Encode(ctx, l.cfg.Codec, result)
	if err != nil {
		return stored{}, err
	}
	return stored{result: p.Bytes, codec: pgtype.Text{String: p.KeyID, Valid: p.Encoded}}, nil
}
