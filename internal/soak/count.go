package main

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/schema"
)

var (
	//go:embed queries/effects.sql
	effectsSQL string
	//go:embed queries/dead_letters.sql
	deadLettersSQL string
)

// tally is what became of the messages of a stream, or of all.
type tally struct {
	sent, distinct, effects, dead int
	duplicates                    int // that the engine has recognised
	lost, doubled, reordered      int
	waiting                       int // at the broker still, when all is over
	notes                         []string
}

// maxNotes is how many messages are named: enough to see a pattern.
const maxNotes = 10

func (t *tally) note(format string, args ...any) {
	if len(t.notes) < maxNotes {
		t.notes = append(t.notes, fmt.Sprintf(format, args...))
	}
}

func (t *tally) add(o tally) {
	t.sent += o.sent
	t.distinct += o.distinct
	t.effects += o.effects
	t.dead += o.dead
	t.duplicates += o.duplicates
	t.lost += o.lost
	t.doubled += o.doubled
	t.reordered += o.reordered
	t.waiting += o.waiting
	t.notes = append(t.notes, o.notes...)
}

// count compares what was sent with what happened. It holds a bit for each
// message and a number for each key.
func (s *stream) count(ctx context.Context) (tally, error) {
	t := tally{sent: int(s.sent.Load()), distinct: int(s.distinct.Load())}
	j := &judge{load: s.load, tally: &t, done: newBits(t.distinct), ordered: s.resent.Load() == 0}
	for key := range j.highest {
		j.highest[key] = -1
	}
	if n := s.resent.Load(); n > 0 {
		t.note("%s: %d messages were sent again because the broker did not confirm them: order is not judged", s.place.Broker, n)
	}

	rows, err := s.pool.Query(ctx, schema.Qualify(effectsSQL, s.place.Name))
	if err == nil {
		var message string
		var n int
		_, err = pgx.ForEachRow(rows, []any{&message, &n}, func() error { j.effect(message, n); return nil })
	}
	if err != nil {
		return t, fmt.Errorf("read the effects of %s: %w", s.place.Broker, err)
	}
	rows, err = s.pool.Query(ctx, schema.Qualify(deadLettersSQL, s.place.Name))
	if err == nil {
		var message string
		_, err = pgx.ForEachRow(rows, []any{&message}, func() error { j.deadLetter(message); return nil })
	}
	if err != nil {
		return t, fmt.Errorf("read the dead letters of %s: %w", s.place.Broker, err)
	}
	j.close()
	return t, nil
}

// judge goes over the effects, then over the dead letters.
type judge struct {
	load    load
	tally   *tally
	done    bits                      // had an effect, or is poison that is dead
	highest [hotKeys + coldKeys]int64 // by key, of those that had an effect
	ordered bool
}

func (j *judge) effect(message string, n int) {
	j.tally.effects++
	switch {
	case n < 0 || n >= j.tally.distinct || message != j.load.id(n):
		j.tally.doubled++
		j.tally.note("an effect of a message that was never sent: %s with number %d", message, n)
	case j.load.poison(n):
		j.tally.doubled++
		j.tally.note("doubled: %s can only fail and has an effect", message)
	case j.done.has(n):
		j.tally.doubled++
		j.tally.note("doubled: %s has another effect", message)
	default:
		j.done.set(n)
		j.order(message, n)
	}
}

func (j *judge) order(message string, n int) {
	key := j.load.key(n)
	if key == keyless || !j.ordered {
		return
	}
	if highest := j.highest[key]; int64(n) < highest {
		j.tally.reordered++
		j.tally.note("reordered: %s took effect behind %s", message, j.load.id(int(highest)))
		return
	}
	j.highest[key] = int64(n)
}

func (j *judge) deadLetter(message string) {
	j.tally.dead++
	event, err := strconv.Atoi(strings.TrimPrefix(message, "evt_"+j.load.name+"_"))
	n := j.load.event(event) // its own inverse
	switch {
	case err != nil || n < 0 || n >= j.tally.distinct:
		j.tally.lost++
		j.tally.note("a dead letter of a message that was never sent: %q", message)
	case !j.load.poison(n) && j.done.has(n):
		j.tally.lost++
		j.tally.note("lost: a copy of %s is dead, though its effect is there", message)
	case !j.load.poison(n):
		j.tally.note("lost: %s is dead, though nothing was wrong with it", message) // counted by close
	case j.done.has(n):
		j.tally.doubled++
		j.tally.note("doubled: poison %s is in the dead letters again", message)
	default:
		j.done.set(n)
	}
}

func (j *judge) close() {
	for n := range j.tally.distinct {
		if !j.done.has(n) {
			j.tally.lost++
			j.tally.note("lost: %s has no effect", j.load.id(n))
		}
	}
}

// bits are a set of numbers.
type bits []uint64

func newBits(n int) bits { return make(bits, n/64+1) }

func (b bits) set(n int)      { b[n/64] |= 1 << (n % 64) }
func (b bits) has(n int) bool { return b[n/64]&(1<<(n%64)) != 0 }
