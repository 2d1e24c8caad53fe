package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/semel-go/semel/handler"
)

// Keys, and what happens to one message in how many.
const (
	hotKeys     = 4
	coldKeys    = 5000
	keylessIn   = 20
	hotIn       = 3
	copiedIn    = 10
	tripIn      = 100
	slowIn      = 200
	verySlowIn  = 5000
	swappedIn   = 20 // pairs of neighbours
	farthest    = 20_000
	keyless     = -1
	maxFiller   = 600
	slowTime    = 250  // at most, in milliseconds
	verySlowFor = 2000 // milliseconds
)

// load is an endless sequence of messages. The n-th is a function of n, so that
// a copy can be sent, and an effect judged, an hour later without a memory of it.
type load struct {
	name     string
	poisonIn int
}

// trait names what is drawn for a message, so that the draws are independent.
type trait uint64

const (
	traitHot trait = iota + 1
	traitKey
	traitKeyless
	traitCopied
	traitDistance
	traitTrip
	traitSlow
	traitVerySlow
	traitPoison
	traitSwapped
	traitFiller
)

// draw returns an even draw below limit (SplitMix64's finalizer over both).
func (l load) draw(n int, t trait, limit int) int {
	z := uint64(n)*0x9e3779b97f4a7c15 + uint64(t)*0xd1342543de82ef95
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return int(z % uint64(limit))
}

func (l load) one(n int, t trait, in int) bool { return l.draw(n, t, in) == 0 }

// poison reports whether the n-th message can never succeed.
func (l load) poison(n int) bool { return l.one(n, traitPoison, l.poisonIn) }

// key is the number of its key, or keyless. Two neighbours share it: what
// stands close together is what can be swapped.
func (l load) key(n int) int {
	pair := n / 2
	switch {
	case l.one(pair, traitKeyless, keylessIn):
		return keyless
	case l.one(pair, traitHot, hotIn):
		return l.draw(pair, traitKey, hotKeys)
	default:
		return hotKeys + l.draw(pair, traitKey, coldKeys)
	}
}

// event is what the producer calls the n-th message. Now and then two events
// are sent in the wrong order: the engine keeps the order of sending.
func (l load) event(n int) int {
	if l.one(n/2, traitSwapped, swappedIn) {
		return n ^ 1
	}
	return n
}

func (l load) id(n int) string { return fmt.Sprintf("evt_%s_%d", l.name, l.event(n)) }

// copied says which message is sent once more after the n-th.
func (l load) copied(n int) (of int, ok bool) {
	if !l.one(n, traitCopied, copiedIn) {
		return 0, false
	}
	reach := []int{1, 20, farthest}[n%3]
	return max(n-l.draw(n, traitDistance, reach), 0), true
}

func (l load) message(n int) *handler.Message {
	w := work{N: n, Poison: l.poison(n), Trip: l.one(n, traitTrip, tripIn), Filler: strings.Repeat("x", l.draw(n, traitFiller, maxFiller))}
	if l.one(n, traitSlow, slowIn) {
		w.Sleep = l.draw(n, traitSlow+100, slowTime)
	}
	if l.one(n, traitVerySlow, verySlowIn) {
		w.Sleep = verySlowFor
	}
	payload, _ := json.Marshal(w) // numbers, truths and x: never fails
	m := &handler.Message{ID: l.id(n), Type: "soaked", Version: int64(l.event(n) + 1), Payload: payload}
	if key := l.key(n); key != keyless {
		m.Key = fmt.Appendf(nil, "key-%04d", key)
	}
	return m
}
