package inbox_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// modelVariable is in how many lives an inbox of each ordering is compared with the
// model. make soak takes more.
const modelVariable = "SEMEL_TEST_MODEL"

// Whatever comes, fails, dies, waits, is replayed, discarded and forgotten, in
// whatever order: the database says what the model of the promise says, step by
// step, and in the end everything has taken effect once.
//
// A failure prints its steps and a seed: -rapid.seed has it again.
func TestModel(t *testing.T) {
	t.Parallel()

	for name, value := range map[string]string{"rapid.checks": cmp.Or(os.Getenv(modelVariable), "6"), "rapid.nofailfile": "true"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue { // nobody said otherwise
			require.NoError(t, flag.Set(name, value))
		}
	}
	for _, ordering := range []inbox.Ordering{inbox.PerKey, inbox.Strict, inbox.ViaInbox} {
		t.Run(ordering.String(), func(t *testing.T) {
			t.Parallel()

			w := newWorld(t, ordering)
			rapid.Check(t, func(t *rapid.T) {
				w.reset(t)
				l := &life{world: w, promise: &promise{ordering: ordering}, forgotten: make(map[*modelled]bool)}
				l.process, l.other = w.start(t), w.start(t)
				defer func() {
					l.process.stop(t)
					l.other.stop(t)
				}()
				t.Repeat(rapid.StateMachineActions(l))
				l.finish(t)
			})
		})
	}
}

// life is one of an inbox, in the world and in the model. Its methods are what may
// happen.
type life struct {
	world     *world
	promise   *promise
	process   *process
	other     *process           // never dies
	forgotten map[*modelled]bool // their record was purged once
	last      *modelled          // that something happened to
}

// Check compares the world with the model. It is called after each step.
func (l *life) Check(t *rapid.T) {
	require.Equal(t, l.promise.look().String(), l.world.look(t, l.promise).String(), "PROMISE BROKEN")
}

// born draws a new message.
func (l *life) born(t *rapid.T) *modelled {
	key := rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "key")
	return l.named(t, fmt.Sprintf("%s%d", cmp.Or(key, "m"), len(l.promise.messages)), key)
}

func (l *life) named(t *rapid.T, name, key string) *modelled {
	m := &modelled{name: name, key: key}
	m.fate = rapid.SampledFrom([]fate{{}, {failures: 1}, {failures: 3}, {unmended: incurable}, {unmended: relapsing}}).Draw(t, "fate")
	way := rapid.SampledFrom([]string{withError, withPanic, brokenInside, connectionCut}).Draw(t, "fails with")
	l.world.fates[name] = &worldFate{fate: m.fate, way: way}
	l.promise.messages = append(l.promise.messages, m)
	l.last = m
	return m
}

// one draws one of the messages that a step may be about, or skips the step.
func (l *life) one(t *rapid.T, of func(*modelled) bool) *modelled {
	var found []string
	for _, m := range l.promise.messages {
		if of(m) {
			found = append(found, m.name)
		}
	}
	if len(found) == 0 {
		t.Skip("no message of this life is so: another action is drawn")
	}
	if l.last == nil || !of(l.last) || !rapid.Bool().Draw(t, "the same") { // much happens to few
		l.last = l.promise.message(rapid.SampledFrom(found).Draw(t, "message"))
	}
	return l.last
}

// bornOr draws a new message or one of those that there are.
func (l *life) bornOr(t *rapid.T, of func(*modelled) bool) *modelled {
	if rapid.Bool().Draw(t, "again") {
		return l.one(t, of)
	}
	return l.born(t)
}

func (m *modelled) isFirst() bool   { return m.original == nil }
func (m *modelled) hasLetter() bool { return m.letter != "" }

// Mend heals a message that fails, at once or after a few attempts more.
func (l *life) Mend(t *rapid.T) {
	m := l.one(t, func(m *modelled) bool { return m.fate != fate{} })
	l.mend(m, fate{failures: rapid.IntRange(0, modelQuick).Draw(t, "fails")})
}

func (l *life) mend(m *modelled, to fate) { m.fate, l.world.fates[m.name].fate = to, to }

// finish mends everything, delivers what nobody knows, and has replayed what is
// dead: then all that nobody decided against has taken effect.
func (l *life) finish(t *rapid.T) {
	for _, m := range l.promise.messages {
		l.mend(m, fate{})
	}
	for _, m := range l.promise.messages {
		if m.isFirst() && m.outcome == 0 {
			l.deliver(t, m, false, 0)
		}
	}
	l.Work(t)
	l.Check(t)
	for _, m := range l.promise.messages {
		if m.letter == dlq.Open {
			l.promise.replay(m)
			require.NoError(t, inbox.NewStore(l.world.Schema).Replay(t.Context(), l.world.Pool, l.world.letter(t, m), "ann"))
		}
	}
	l.Work(t)
	l.Check(t)
	require.Empty(t, l.promise.rows)
	for _, m := range l.promise.messages {
		want := 1
		if m.outcome == handler.Skipped {
			want = 0
		}
		require.True(t, l.forgotten[m] || l.world.effects[m.name] == want, "%s took effect %d times", m.name, l.world.effects[m.name])
	}
}
