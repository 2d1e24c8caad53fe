package campaign

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/schema"
)

//go:embed queries/effects.sql
var effectsSQL string

//go:embed queries/balances.sql
var balancesSQL string

//go:embed queries/dead_letters.sql
var deadLettersSQL string

// Tally is what became of the messages of a group.
type Tally struct {
	// Lost: messages without an effect, and poison that is not in the dead
	// letters as it came. A message that was dead-lettered wrongly is lost, and so
	// is a decision about a dead one that was not carried out.
	Lost int

	// Doubled: effects beyond one each, effects of poison among them.
	Doubled int

	// Reordered: effects behind that of a message of the same key that was
	// sent later.
	Reordered int

	// Notes tell which messages these are, up to a number.
	Notes []string
}

// maxNotes is how many messages are named: enough to see a pattern.
const maxNotes = 10

func (t *Tally) note(format string, args ...any) {
	if len(t.Notes) < maxNotes {
		t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
	}
}

// facts is what a group's tables say.
type facts struct {
	effects  []effect
	balances map[string]int
	dead     []deadLetter
}

type effect struct {
	Message, Key string
	N            int
}

type deadLetter struct {
	Message string
	Payload []byte
	Reason  string
	State   string
}

// read reads the tables of a group. The queries know nothing of the engine.
func read(ctx context.Context, pool *pgxpool.Pool, name string) (f facts, err error) {
	type balance struct {
		Key     string
		Balance int
	}
	var sums []balance
	err = errors.Join(
		collect(ctx, pool, schema.Qualify(effectsSQL, name), &f.effects),
		collect(ctx, pool, schema.Qualify(balancesSQL, name), &sums),
		collect(ctx, pool, schema.Qualify(deadLettersSQL, name), &f.dead),
	)
	if err != nil {
		return f, fmt.Errorf("read the effects in schema %q: %w", name, err)
	}
	f.balances = make(map[string]int, len(sums))
	for _, s := range sums {
		f.balances[s.Key] = s.Balance
	}
	return f, nil
}

func collect[T any](ctx context.Context, pool *pgxpool.Pool, sql string, into *[]T) error {
	rows, err := pool.Query(ctx, sql)
	if err == nil {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	}
	return err
}

// count compares what was sent with what happened.
func count(all []sent, f facts, s spec) Tally {
	var t Tally
	rows := map[string]int{}
	for _, e := range f.effects {
		rows[e.Message]++
	}
	letters := map[string][]deadLetter{}
	for _, d := range f.dead {
		letters[d.Message] = append(letters[d.Message], d)
	}
	wanted := map[string]int{} // balances
	for _, m := range all {
		id := m.message.ID
		switch {
		case m.poison:
			t.countPoison(m, rows[id], letters[id])
			t.countDecision(id, letters[id], s.ofInbox(), dlq.Discarded)
		case m.message.Type == wire.Broken:
			wanted[string(m.message.Key)]++
			t.countEffects(id, rows[id], nil)
			t.countDecision(id, letters[id], true, dlq.Resolved)
		default:
			wanted[string(m.message.Key)]++
			t.countEffects(id, rows[id], letters[id])
		}
		delete(rows, id)
		delete(letters, id)
	}
	for id, n := range rows {
		t.Doubled += n
		t.note("%d effects of a message that was never sent: %q", n, id)
	}
	for id := range letters {
		t.Lost++
		t.note("a dead letter of a message that was never sent: %q", id)
	}
	t.countBalances(f.balances, wanted)
	if s.crew.ordered {
		t.countOrder(f.effects)
	}
	return t
}

func (t *Tally) countEffects(id string, rows int, letters []deadLetter) {
	switch {
	case rows == 0 && len(letters) > 0:
		t.Lost++
		t.note("lost: %s is dead, reason %s, though nothing was wrong with it", id, letters[0].Reason)
	case rows == 0:
		t.Lost++
		t.note("lost: %s has no effect", id)
	case len(letters) > 0:
		t.Lost++
		t.note("lost: a copy of %s is dead, reason %s, though its effect is there", id, letters[0].Reason)
	}
	if rows > 1 {
		t.Doubled += rows - 1
		t.note("doubled: %s has %d effects", id, rows)
	}
}

func (t *Tally) countPoison(s sent, rows int, letters []deadLetter) {
	id := s.message.ID
	if rows > 0 {
		t.Doubled += rows
		t.note("doubled: %s can only fail and has %d effects", id, rows)
	}
	switch {
	case len(letters) == 0:
		t.Lost++
		t.note("lost: poison %s is not in the dead letters", id)
	case len(letters) > 1:
		t.Doubled += len(letters) - 1
		t.note("doubled: poison %s is in the dead letters %d times", id, len(letters))
	case !bytes.Equal(letters[0].Payload, s.message.Payload):
		t.Lost++
		t.note("lost: the dead letter of %s has other bytes than were sent", id)
	}
}

// countDecision counts a dead letter of which a decision is wanted that was made
// and not carried out. One that is not there is counted where it is missed.
func (t *Tally) countDecision(id string, letters []deadLetter, wanted bool, want dlq.State) {
	if wanted && len(letters) > 0 && letters[0].State != string(want) {
		t.Lost++
		t.note("lost: the dead letter of %s, reason %s, is %s, not %s", id, letters[0].Reason, letters[0].State, want)
	}
}

// countBalances counts a second time, in another way. The balances of a key
// hide a message that is lost beside one that is doubled, so it only adds what
// the rows did not show.
func (t *Tally) countBalances(balances, wanted map[string]int) {
	missing, surplus := 0, 0
	for key, balance := range balances {
		missing += max(wanted[key]-balance, 0)
		surplus += max(balance-wanted[key], 0)
	}
	if missing > t.Lost {
		t.note("lost: balances lack %d", missing)
		t.Lost = missing
	}
	if surplus > t.Doubled {
		t.note("doubled: balances are too high by %d", surplus)
		t.Doubled = surplus
	}
}

// countOrder walks the effects in the order of their writing. Those of a key
// must rise; a second effect of a message is a double and no matter of order.
func (t *Tally) countOrder(effects []effect) {
	highest := map[string]effect{}
	seen := map[string]bool{}
	for _, e := range effects {
		if e.Key == "" || seen[e.Message] {
			continue
		}
		seen[e.Message] = true
		if last, ok := highest[e.Key]; ok && e.N < last.N {
			t.Reordered++
			t.note("reordered: %s took effect behind %s", e.Message, last.Message)
			continue
		}
		highest[e.Key] = e
	}
}
