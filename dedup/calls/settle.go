package calls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/jitter"
	"github.com/semel-go/semel/internal/msgrow"
)

// settle commits what came of a try, and returns what Do does.
func (l *Ledger) settle(ctx context.Context, t *try) ([]byte, error) {
	e := t.ended
	if e.known {
		return e.result, nil
	}
	l.trace(ctx, BeforeResult, t.call)
	defer l.trace(ctx, AfterResult, t.call)
	if e.state == Done {
		return l.done(ctx, t)
	}
	s := t.back
	s.state = e.state
	said := e.err
	if handler.IsInFlight(e.err) { // of us, not of the call
		said = nil
	} else if e.said != nil {
		said = e.said
	}
	ours, err := l.giveBack(ctx, t, s, said)
	switch {
	case err != nil && e.state == Unknown:
		return nil, err // decided again by the next attempt
	case err != nil:
		l.cfg.Logger.WarnContext(ctx, "how a call ended is not in the ledger: after its lease it counts as unknown", slog.String("step", t.call.Step),
			slog.String("consumer", t.call.Consumer), slog.String("message_id", t.call.MessageID.String()), slog.Any("error", err))
	case !ours && (e.state == Failed || e.state == Unknown):
		return nil, handler.InFlight(fmt.Errorf("%s: %w since its lease ended: what came of it is theirs to say", t.call.name(), ErrInHand))
	}
	return nil, e.err
}

// done stores the result. The call is done whatever happens here.
func (l *Ledger) done(ctx context.Context, t *try) ([]byte, error) {
	t.held = false
	s, written, err := l.keep(ctx, t)
	switch {
	case err != nil:
		return nil, err
	case written && s.lost.Valid:
		_, err := s.decode(ctx, nil)
		l.cfg.Logger.ErrorContext(ctx, "a call is done and its result could not be kept: somebody has to put it in", slog.String("step", t.call.Step),
			slog.String("consumer", t.call.Consumer), slog.String("message_id", t.call.MessageID.String()), slog.String("reason", s.lost.String))
		return nil, fmt.Errorf("%s: %w", t.call.name(), err)
	case written:
		return t.ended.result, nil
	}
	return l.doneLate(ctx, t)
}

// keep encodes and writes the result. What fails is tried again for a while: without
// its record a call that is done is one that nobody knows the end of.
func (l *Ledger) keep(ctx context.Context, t *try) (s stored, written bool, err error) {
	pause := jitter.New(50*time.Millisecond, time.Second)
	for began := time.Now(); ; {
		s, err = l.encodedNow(ctx, t, time.Since(began) > l.cfg.Grace)
		if err == nil {
			written, err = l.finish(ctx, t, s)
		}
		if err == nil || time.Since(began) > l.cfg.Grace {
			return s, written, err
		}
		time.Sleep(pause.NextBackOff())
	}
}

// encodedNow is encoded, but for a codec that cannot: its keys may be back in a
// moment, unless this is the last try.
func (l *Ledger) encodedNow(ctx context.Context, t *try, last bool) (stored, error) {
	bounded, cancel := l.bounded(ctx)
	defer cancel()
	s, err := l.encoded(bounded, t.ended.result)
	if err != nil && (last || !msgrow.IsAway(err)) {
		return stored{lost: errorText(err)}, nil
	}
	return s, err
}

// doneLate is for a call that is done and whose row says something newer.
func (l *Ledger) doneLate(ctx context.Context, t *try) ([]byte, error) {
	bounded, cancel := l.bounded(ctx)
	defer cancel()
	s, state, err := l.load(bounded, l.pool, t)
	if err != nil {
		return nil, err
	}
	if s.found && state == Done {
		result, err := s.decode(ctx, l.cfg.Codec)
		if err != nil {
			return nil, fmt.Errorf("result of %s: %w", t.call.name(), err)
		}
		return result, nil
	}
	l.cfg.Logger.ErrorContext(ctx, "a call was done after it was decided that it was not: look whether it was done twice", slog.String("step", t.call.Step),
		slog.String("consumer", t.call.Consumer), slog.String("message_id", t.call.MessageID.String()), slog.Int("generation", t.call.Generation))
	return nil, handler.InFlight(errors.Join(fmt.Errorf("%s was done, but it was decided meanwhile that it was not", t.call.name()), ErrInHand))
}
