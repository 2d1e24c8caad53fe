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
	poisonIn  = 20 // can never succeed
)

// sent is one message as it was published, whatever the number of its copies.
type sent struct {
	message *handler.Message
	poison  bool
}

// load makes the messages of a group and remembers them.
type load struct {
	name string
	all  []sent // in the order of their first copies
	rand *rand.Rand
}

func newLoad(name string) *load {
	return &load{name: name, rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
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
		m := l.make(key, l.one(poisonIn))
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
		messages = append(messages, l.make(key, false))
	}
	return messages
}

func (l *load) one(in int) bool { return l.rand.IntN(in) == 0 }

// make makes the next message. Poison is undecodable, or fails every time.
func (l *load) make(key string, poison bool) *handler.Message {
	n := len(l.all)
	payload, _ := json.Marshal(wire.Effect{N: n, Amount: 1}) // two numbers: never fails
	m := &handler.Message{
		ID:      fmt.Sprintf("evt_%s_%d", l.name, n),
		Type:    wire.Paid,
		Key:     []byte(key),
		Payload: payload,
		Headers: handler.Headers{{Name: "chaos-filler", Value: []byte(strings.Repeat("x", l.rand.IntN(200)))}},
	}
	switch {
	case poison && l.one(2):
		m.Payload = append([]byte{0x00, 0xff, 0xfe, '{'}, payload...)
	case poison:
		m.Type = wire.Doomed
	}
	l.all = append(l.all, sent{m, poison})
	return m
}

// numbered returns a copy of m to publish under a number of its own.
func numbered(m *handler.Message, number int) *handler.Message {
	c := *m
	c.Headers = append(handler.Headers{wire.CopyHeader(number)}, m.Headers...)
	return &c
}
