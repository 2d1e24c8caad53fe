package inbox_test

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// Deliver delivers a new message.
func (l *life) Deliver(t *rapid.T) { l.deliver(t, l.born(t), false, 0) }

// Redeliver delivers a message once more, as the broker or the producer does.
func (l *life) Redeliver(t *rapid.T) {
	l.deliver(t, l.one(t, (*modelled).isFirst), rapid.Bool().Draw(t, "redelivered"), 0)
}

// Die delivers a message, and the process dies with it.
func (l *life) Die(t *rapid.T) {
	m := l.bornOr(t, func(m *modelled) bool { return m.isFirst() && m.outcome == 0 })
	l.deliver(t, m, rapid.Bool().Draw(t, "redelivered"), rapid.SampledFrom([]inbox.EventKind{
		inbox.Claimed, inbox.Handled, inbox.Storing, inbox.Parking, inbox.Committing, inbox.Committed,
	}).Draw(t, "dies at"))
}

// Kill delivers a message that takes its process along, up to so many times.
func (l *life) Kill(t *rapid.T) {
	m := l.bornOr(t, func(m *modelled) bool { return m.isFirst() && m.outcome == 0 })
	for n := rapid.IntRange(1, modelDeaths).Draw(t, "times"); n > 0 && m.outcome == 0; n-- {
		l.deliver(t, m, true, inbox.Claimed)
	}
}

func (l *life) deliver(t *rapid.T, m *modelled, again bool, crash inbox.EventKind) {
	l.process.dies(crash, m.name)
	got, err := l.process.Process(l.process.ctx, m.message(again))
	want, dies := l.promise.deliver(m, again, l.process.diedAt())
	l.answered(t, want, got, err, dies)
}

// answered compares what became of a message, and begins a new process where the
// old one died.
func (l *life) answered(t *rapid.T, want, got handler.Outcome, err error, dies bool) {
	require.Equal(t, dies, l.process.died())
	if dies {
		l.Restart(t)
		return
	}
	l.process.dies(0, "")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// Store stores a message, a new one or not.
func (l *life) Store(t *rapid.T) {
	m := l.bornOr(t, (*modelled).isFirst)
	take := l.way(t, l.process.Store, l.process.storeTx)
	got, err := take(l.process.ctx, m.message(false))
	l.answered(t, l.promise.accept(m), got, err, false)
}

// StoreMany stores messages at once, some of them twice.
func (l *life) StoreMany(t *rapid.T) {
	messages := []*modelled{l.born(t), l.one(t, (*modelled).isFirst), l.born(t)}
	messages = append(messages, messages[rapid.IntRange(0, 2).Draw(t, "copy")])
	var msgs []*handler.Message
	var want []handler.Outcome
	for _, m := range messages {
		msgs = append(msgs, m.message(false))
		want = append(want, l.promise.accept(m))
	}
	got, err := l.process.StoreAll(l.process.ctx, msgs)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// Differ delivers another payload under an id that is known.
func (l *life) Differ(t *rapid.T) {
	first := l.one(t, func(m *modelled) bool { return m.isFirst() && m.outcome != 0 })
	name := first.name + "'"
	if !slices.ContainsFunc(l.promise.messages, func(m *modelled) bool { return m.name == name }) {
		l.named(t, name, first.key).original = first
	}
	m := l.promise.message(name)
	l.promise.differ(m)
	take := l.way(t, l.process.Process, l.process.Store, l.process.storeTx, l.process.storeAll)
	got, err := take(l.process.ctx, m.message(rapid.Bool().Draw(t, "redelivered")))
	l.answered(t, handler.Mismatch, got, err, false)
}

type takeFunc func(context.Context, *handler.Message) (handler.Outcome, error)

func (l *life) way(t *rapid.T, ways ...takeFunc) takeFunc {
	return ways[rapid.IntRange(0, len(ways)-1).Draw(t, "way")]
}

func (p *process) storeAll(ctx context.Context, msg *handler.Message) (handler.Outcome, error) {
	outcomes, err := p.StoreAll(ctx, []*handler.Message{msg})
	if err != nil {
		return 0, err
	}
	return outcomes[0], nil
}

// storeTx stores a message in a transaction, after one that was rolled back.
func (p *process) storeTx(ctx context.Context, msg *handler.Message) (o handler.Outcome, err error) {
	for _, end := range []func(pgx.Tx) error{
		func(tx pgx.Tx) error { return tx.Rollback(ctx) },
		func(tx pgx.Tx) error { return tx.Commit(ctx) },
	} {
		tx, err := p.w.Pool.Begin(ctx)
		if err != nil {
			return 0, err
		}
		o, err = p.StoreTx(ctx, tx, msg)
		if err := errors.Join(err, end(tx)); err != nil {
			return 0, err
		}
	}
	return o, nil
}
