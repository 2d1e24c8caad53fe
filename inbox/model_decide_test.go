package inbox_test

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/inbox"
)

// Replay is a person's decision; so are the next ones. What failed is often mended
// before.
func (l *life) Replay(t *rapid.T) {
	m := l.one(t, (*modelled).hasLetter)
	if rapid.Bool().Draw(t, "mended") {
		l.mend(m, fate{failures: rapid.IntRange(0, modelQuick).Draw(t, "fails")})
	}
	l.decide(t, m, l.promise.replay, inbox.Store.Replay)
}

// Discard decides against a message.
func (l *life) Discard(t *rapid.T) {
	l.decide(t, l.one(t, (*modelled).hasLetter), l.promise.discard, inbox.Store.Discard)
}

// Reopen takes that back.
func (l *life) Reopen(t *rapid.T) {
	l.decide(t, l.one(t, (*modelled).hasLetter), l.promise.reopen, inbox.Store.Reopen)
}

func (l *life) decide(t *rapid.T, m *modelled, model func(*modelled) bool, real func(inbox.Store, context.Context, inbox.DB, int64, string) error) {
	err := real(inbox.NewStore(l.world.Schema), t.Context(), l.world.Pool, l.world.letter(t, m), "ann")
	if model(m) {
		require.NoError(t, err)
	} else {
		require.ErrorIs(t, err, inbox.ErrNoDeadLetter)
	}
}

// letter is the number of a message's dead letter.
func (w *world) letter(t *rapid.T, m *modelled) (id int64) {
	require.NoError(t, w.Pool.QueryRow(t.Context(), `SELECT id FROM dead_letters WHERE convert_from(payload, 'UTF8') = $1`, m.name).Scan(&id))
	return id
}

// ReplayHere replays a message in the process, which may die with it.
func (l *life) ReplayHere(t *rapid.T) {
	m := l.one(t, (*modelled).hasLetter)
	crash := rapid.SampledFrom([]inbox.EventKind{
		0, inbox.Claimed, inbox.Handled, inbox.Leaving, inbox.Parking, inbox.Committing, inbox.Committed,
	}).Draw(t, "dies at")
	l.process.dies(crash, m.name)
	got, err := l.process.Replay(l.process.ctx, l.world.letter(t, m))
	want, dies := l.promise.replayHere(m, l.process.diedAt())
	if want == 0 && !dies {
		require.ErrorIs(t, err, inbox.ErrNoDeadLetter)
		l.process.dies(0, "")
		return
	}
	l.answered(t, want, got, err, dies)
}

// ReplayTwice has two replay a message at once. Which of them does is chance; what
// has become of it when the inbox is worked off is not.
func (l *life) ReplayTwice(t *rapid.T) {
	m := l.one(t, func(m *modelled) bool { return m.letter == dlq.Open || m.letter == dlq.Replaying })
	id := l.world.letter(t, m)
	for _, err := range l.atOnce(func(p *process) error {
		_, err := p.Replay(p.ctx, id)
		return err
	}) {
		require.True(t, err == nil || errors.Is(err, inbox.ErrNoDeadLetter), err)
	}
	l.promise.replayHere(m, 0)
	l.Work(t)
}

// DecideBeside has a message replayed, and at the same time discarded or replayed
// once more. Who is faster is chance, that there is one decision is not.
func (l *life) DecideBeside(t *rapid.T) {
	m := l.one(t, func(m *modelled) bool { return m.letter == dlq.Open || m.letter == dlq.Replaying })
	id, store := l.world.letter(t, m), inbox.NewStore(l.world.Schema)
	require.NoError(t, store.Replay(t.Context(), l.world.Pool, id, "ann"))
	l.promise.replay(m)

	discards := rapid.Bool().Draw(t, "discards")
	var err error
	l.process.work(t, func() {
		if discards {
			err = store.Discard(t.Context(), l.world.Pool, id, "bob")
		} else {
			_, err = l.other.Replay(l.other.ctx, id)
		}
	})
	if err != nil {
		require.ErrorIs(t, err, inbox.ErrNoDeadLetter)
	}
	if discards && err == nil {
		require.True(t, l.promise.discard(m))
		m.fate = l.world.fates[m.name].fate // it may have been tried before
	}
	l.promise.work()
	if discards && err != nil {
		require.False(t, l.promise.discard(m), "nobody was faster")
	}
}
