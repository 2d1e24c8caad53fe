package outbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/jitter"
	"github.com/semel-go/semel/internal/msgrow"
)

// undecodedError is the answer for an event whose payload cannot be decoded. It
// says nothing of the broker.
type undecodedError struct{ err error }

func (e *undecodedError) Error() string { return e.err.Error() }
func (e *undecodedError) Unwrap() error { return e.err }

func isUndecoded(err error) bool { return errors.As(err, new(*undecodedError)) }

// undecodedEvery is how often it is logged that keys are away.
const undecodedEvery = 10 * time.Second

// decode undoes what the writer's codec did, before anybody sees the event.
func (r *relayRun) decode(ctx context.Context, e *event) error {
	if !e.stored.Encoded {
		return nil
	}
	payload, err := e.stored.Decode(ctx, r.cfg.Codec)
	if err != nil {
		return &undecodedError{err}
	}
	msg := *e.msg
	msg.Payload = payload
	e.msg, e.stored, e.own = &msg, msgrow.Payload{}, handler.Message{}
	return nil
}

// withhold holds an aggregate back whose key cannot be had now. No attempt is
// spent. It reports false if that is so for one aggregate after the other: then
// their lane is to rest. It is called with mu held.
func (r *relayRun) withhold(l *lane, e *event, err error) bool {
	if time.Since(l.undecodedAt) > undecodedEvery {
		l.undecodedAt = time.Now()
		r.cfg.Logger.Error("relay cannot have the key of an event: it waits with its aggregate, no attempt is spent",
			slog.String("relay", r.cfg.Name), slog.String("event_id", e.msg.ID), slog.String("aggregate_type", l.kind), slog.Any("error", err))
	}
	if l.undecoded >= maxFailures {
		return false
	}
	l.undecoded++
	r.suspend(e, jitter.Draw(r.cfg.RetryDelay, r.cfg.RetryMaxDelay, 1))
	return true
}
