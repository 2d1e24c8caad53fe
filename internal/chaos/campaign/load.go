package campaign

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
)

const (
	keyCount  = 12 // over all partitions of a topic
	waveSize  = 60 // messages of a wave, before copies
	distance  = 12 // how far behind its message a copy may be sent
	keylessIn = 10 // one message in so many has no key,
	copiedIn  = 3  // is sent again,
	poisonIn  = 20 // can never succeed;
	brokenIn  = 15 // and where a person decides, in so many must be mended and replayed,
	flakyIn   = 5  // or is tried several times
	behind    = 2  // messages behind the late one of a key
)

// undecodable is poison of which no handler can make anything.
const undecodable = "undecodable"

// sent is one message as it was published, whatever the number of its copies.
type sent struct {
	message *handler.Message
	poison  bool // it can never succeed
}

// load makes the messages of a group and remembers them.
type load struct {
	name    string
	decided bool   // there is a person who decides about what is dead
	all     []sent // in the order of their first copies
	rand    *rand.Rand
}

func newLoad(name string, decided bool) *load {
	return &load{name: name, decided: decided, rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
}

func keys() []string {
	all := []string{""}
	for i := range keyCount {
		all = append(all, fmt.Sprintf("key-%02d", i))
	}
	return all
}

// wave makes messages of many kinds, some of them several times.
func (l *load) wave() []*handler.Message {
	type late struct {
		at int
		m  *handler.Message
	}
	var messages []*handler.Message
	var copies []late
	for range waveSize {
		key := fmt.Sprintf("key-%02d", l.rand.IntN(keyCount))
		if l.one(keylessIn) {
			key = ""
		}
		m := l.make(key, l.draw())
		messages = append(messages, m)
		for range 2 {
			if l.one(copiedIn) {
				copies = append(copies, late{len(messages) + l.rand.IntN(distance), m})
			}
		}
		for i := 0; i < len(copies); i++ {
			if copies[i].at <= len(messages) {
				messages = append(messages, copies[i].m)
				copies = append(copies[:i], copies[i+1:]...)
				i--
			}
		}
	}
	for _, c := range copies {
		messages = append(messages, c.m)
	}
	return messages
}

// barrier makes one message of every key. Where a queue or a partition keeps
// its order, they come behind everything that was in flight at a kill.
func (l *load) barrier() []*handler.Message {
	var messages []*handler.Message
	for _, key := range keys() {
		messages = append(messages, l.make(key, wire.Paid))
	}
	return messages
}

// crowd makes so many messages that wait for a later attempt, and some of each
// key behind one that does.
func (l *load) crowd(n int) []*handler.Message {
	var messages []*handler.Message
	for _, key := range keys() {
		messages = append(messages, l.make(key, wire.Late))
		for range behind {
			messages = append(messages, l.make(key, wire.Paid))
		}
	}
	for range n - len(keys()) {
		messages = append(messages, l.make("", wire.Late))
	}
	return messages
}

func (l *load) one(in int) bool { return l.rand.IntN(in) == 0 }

// draw says what the next message of a wave is.
func (l *load) draw() string {
	switch {
	case l.one(2 * poisonIn):
		return undecodable
	case l.one(2 * poisonIn):
		return wire.Doomed
	case l.decided && l.one(brokenIn):
		return wire.Broken
	case l.decided && l.one(flakyIn):
		return wire.Flaky
	default:
		return wire.Paid
	}
}

// make makes the next message, of a type of package wire, or undecodable.
func (l *load) make(key, what string) *handler.Message {
	n := len(l.all)
	payload, _ := json.Marshal(wire.Effect{N: n, Amount: 1}) // two numbers: never fails
	m := &handler.Message{
		ID:      fmt.Sprintf("evt_%s_%d", l.name, n),
		Type:    what,
		Key:     []byte(key),
		Payload: payload,
		Headers: handler.Headers{{Name: "chaos-filler", Value: []byte(strings.Repeat("x", l.rand.IntN(200)))}},
	}
	if what == undecodable {
		m.Type, m.Payload = wire.Paid, append([]byte{0x00, 0xff, 0xfe, '{'}, payload...)
	}
	l.all = append(l.all, sent{m, what == undecodable || what == wire.Doomed})
	return m
}

// numbered returns a copy of m to publish under a number of its own.
func numbered(m *handler.Message, number int) *handler.Message {
	c := *m
	c.Headers = append(handler.Headers{wire.CopyHeader(number)}, m.Headers...)
	return &c
}
