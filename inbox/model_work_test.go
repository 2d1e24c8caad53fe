package inbox_test

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/inbox"
)

// Work handles what is ready.
func (l *life) Work(t *rapid.T) {
	l.promise.work()
	l.process.work(t, func() {})
}

// WorkAndDie does, and the process dies with a message, and up to so many times the
// next one does.
func (l *life) WorkAndDie(t *rapid.T) {
	m := l.one(t, func(m *modelled) bool { return m.place != "" && m.place != parked })
	point := rapid.SampledFrom([]inbox.EventKind{
		inbox.Taken, inbox.Claimed, inbox.Handled, inbox.Leaving, inbox.Parking, inbox.Committing, inbox.Committed,
	}).Draw(t, "dies at")
	died := true
	for n := rapid.IntRange(1, modelDeaths).Draw(t, "times"); n > 0 && died; n-- {
		died = l.workAndDie(t, m, point)
	}
}

func (l *life) workAndDie(t *rapid.T, m *modelled, point inbox.EventKind) (died bool) {
	with := m.name
	if point == inbox.Taken {
		with = ""
	}
	l.process.dies(point, with)
	l.process.work(t, func() {})
	if !l.process.died() {
		l.process.dies(0, "")
		l.promise.work()
		return false
	}
	rows, deaths := len(l.promise.rows), m.deaths
	if m.suspect && point == inbox.Claimed {
		deaths++
	}
	l.Restart(t)
	left := l.world.look(t, l.promise)
	l.promise.catchUp(left, l.world.fates)
	require.Equal(t, l.promise.look().String(), left.String())
	require.Equal(t, point == inbox.Committed, m.place == "" || m.place == parked, "dead with it, and done")
	switch point {
	case inbox.Claimed:
		require.Equal(t, deaths, m.deaths, "that it died of")
	case inbox.Taken:
		require.Len(t, l.promise.rows, rows, "nothing was handled")
	}
	return true
}

// DeliverTwice delivers copies of a message at once.
func (l *life) DeliverTwice(t *rapid.T) {
	m := l.born(t)
	for _, err := range l.atOnce(func(p *process) error {
		_, err := p.Process(p.ctx, m.message(false))
		return err
	}) {
		require.NoError(t, err)
	}
	l.promise.deliver(m, false, 0)
	l.Work(t)
}

func (l *life) atOnce(f func(*process) error) (errs [2]error) {
	var both sync.WaitGroup
	for i, p := range []*process{l.process, l.other} {
		both.Go(func() { errs[i] = f(p) })
	}
	both.Wait()
	return errs
}

// WorkBeside delivers messages of one key while the inbox is worked, here or
// elsewhere. Whether they wait is chance, in what order they take effect is not.
func (l *life) WorkBeside(t *rapid.T) {
	first := l.born(t)
	messages := []*modelled{first}
	for range 3 {
		messages = append(messages, l.named(t, fmt.Sprintf("%s%d", cmp.Or(first.key, "m"), len(l.promise.messages)), first.key))
	}
	worker := l.process
	if rapid.IntRange(0, 3).Draw(t, "elsewhere") == 3 { // it finds out late
		worker = l.other
	}
	worker.work(t, func() {
		for _, m := range messages {
			_, err := l.process.Process(l.process.ctx, m.message(false))
			require.NoError(t, err)
		}
	})
	for _, m := range messages {
		l.promise.deliver(m, false, 0)
	}
	l.promise.work()
}

// Restart begins a new process.
func (l *life) Restart(t *rapid.T) {
	l.process.stop(t)
	l.process = l.world.start(t)
}

// Forget purges the records of all that was handled.
func (l *life) Forget(t *rapid.T) {
	for _, m := range l.promise.forget() {
		l.forgotten[m] = true
	}
	l.world.do(t, `UPDATE processed_messages SET processed_at = clock_timestamp() - interval '30 days'`)
	_, err := dedup.NewStore(l.world.Schema).Purge(t.Context(), l.world.Pool, dedup.MinRetention, dedup.PurgeConfig{Consumer: modelConsumer})
	require.NoError(t, err)
}

// ForgetLetters purges the dead letters that people are done with.
func (l *life) ForgetLetters(t *rapid.T) {
	l.promise.forgetLetters()
	l.world.do(t, `UPDATE dead_letters SET resolved_at = clock_timestamp() - interval '30 days' WHERE resolved_at IS NOT NULL`)
	store := dlq.NewStore(l.world.Schema)
	_, err := store.Purge(t.Context(), l.world.Pool, dlq.PurgeConfig{Consumer: modelConsumer, MaxAge: dedup.MinRetention})
	require.NoError(t, err)
}
