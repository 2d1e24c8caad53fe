package rabbitmq

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/semel-go/semel/internal/jitter"
)

const (
	// The ceiling is about what a broker takes to restart: waiting longer than
	// that would double the outage.
	reconnectBase    = 200 * time.Millisecond
	reconnectCeiling = 5 * time.Second

	// steadyAfter is how long things must have worked before the backoff starts
	// anew. A channel that opens well and is closed a moment later would
	// otherwise be reopened in a tight loop.
	steadyAfter = reconnectCeiling

	// An outage is logged at once and then this often; from alarmAfter on
	// somebody should look at it.
	logEvery   = 10 * time.Second
	alarmAfter = time.Minute

	// guessesBelieved is how often in a row the socket must end inside the
	// handshake before we believe that our credentials were refused.
	guessesBelieved = 2
)

// supervisor keeps one connection alive for work that needs it, and replaces it
// when it has ended. It is used by one goroutine.
type supervisor struct {
	link   link
	status *status

	// final reports whether err ends the supervision. Nil: nothing does.
	final func(err error) bool

	retry   *backoff.ExponentialBackOff
	guesses int // failures in a row that are only assumed to be a refusal

	workedSince  time.Time // zero while it does not work
	waitingSince time.Time // zero while no other consumer is in the way
	downSince    time.Time // zero while it works
	logged       time.Time
}

func newSupervisor(l link, st *status, final func(error) bool) *supervisor {
	return &supervisor{link: l, status: st, final: final, retry: jitter.New(reconnectBase, reconnectCeiling)}
}

// run calls work with a live connection, again and again, until ctx ends (nil)
// or an error is final. work is to return when its channel has ended, and to
// call [supervisor.works] once it does its job. The connection is kept while it
// lives, so that a channel the broker closed costs no handshake.
func (v *supervisor) run(ctx context.Context, work func(context.Context, *connection) error) error {
	var conn *connection
	defer func() {
		if conn != nil {
			conn.close()
		}
	}()
	for {
		var err error
		if conn == nil || !conn.alive() {
			v.status.set(Connecting)
			conn, err = v.link.connect(ctx)
		}
		if err == nil {
			err = work(ctx, conn)
		}
		if ctx.Err() != nil {
			return nil
		}
		if v.failed(ctx, err) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(v.retry.NextBackOff()):
		}
	}
}

// works notes that everything is in place.
func (v *supervisor) works(ctx context.Context, state State) {
	v.status.set(state)
	v.guesses = 0
	if v.workedSince.IsZero() {
		v.workedSince = time.Now()
	}
	v.back(ctx)
	if !v.waitingSince.IsZero() && state == Consuming {
		v.link.log.LogAttrs(ctx, slog.LevelInfo, "took the queue over",
			slog.String("broker", v.link.broker()), slog.String("connection", v.link.name), slog.Duration("waited_for", time.Since(v.waitingSince)))
		v.waitingSince = time.Time{}
	}
}

// waits notes that another consumer is in the way. It may have the queue for
// months: that is said once.
func (v *supervisor) waits(ctx context.Context, err error) {
	v.status.waits(err)
	v.back(ctx)
	if v.waitingSince.IsZero() {
		v.waitingSince = time.Now()
		v.link.log.LogAttrs(ctx, slog.LevelWarn, "waiting to take the queue over: another consumer has it for itself, or the right to read it is missing",
			slog.String("broker", v.link.broker()), slog.String("connection", v.link.name), slog.Any("error", err))
	}
}

// back notes that there is a broker.
func (v *supervisor) back(ctx context.Context) {
	if !v.downSince.IsZero() {
		v.link.log.LogAttrs(ctx, slog.LevelInfo, "rabbitmq is back",
			slog.String("broker", v.link.broker()), slog.Duration("down_for", time.Since(v.downSince)))
		v.downSince, v.logged = time.Time{}, time.Time{}
	}
}

// failed notes err, logs it when it is time, and reports whether it is final.
func (v *supervisor) failed(ctx context.Context, err error) bool {
	now := time.Now()
	if guessed(err) {
		v.guesses++
	} else {
		v.guesses = 0
	}
	if !v.workedSince.IsZero() && now.Sub(v.workedSince) > steadyAfter {
		v.retry.Reset()
	}
	v.workedSince = time.Time{}
	if errors.Is(err, errOccupied) {
		v.waits(ctx, err)
		return false
	}
	if v.downSince.IsZero() {
		v.downSince = now
	}
	v.status.failed(err)

	believed := refused(err) && (!guessed(err) || v.guesses >= guessesBelieved)
	if believed && v.final != nil && v.final(err) {
		return true
	}
	if now.Sub(v.logged) >= logEvery {
		v.logged = now
		level := slog.LevelWarn
		if believed || now.Sub(v.downSince) >= alarmAfter {
			level = slog.LevelError
		}
		v.link.log.LogAttrs(ctx, level, "rabbitmq is away, trying again",
			slog.String("broker", v.link.broker()), slog.Duration("down_for", now.Sub(v.downSince)), slog.Any("error", err))
	}
	return false
}
