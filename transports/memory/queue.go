package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/semel-go/semel/handler"
)

var _ handler.OrderedPublisher = (*Queue)(nil)

// errNoMessage is returned by [Queue.Publish] in place of a nil message.
var errNoMessage = errors.New("message is nil")

// Queue is a queue of messages in memory and their [handler.Publisher]. Make
// one with [NewQueue].
type Queue struct {
	name string

	// prefix begins every position. It differs for each queue ever made, or a
	// later queue of the same name would give its messages used positions.
	prefix string

	mu        sync.Mutex // guards the fields below and those of every source's run
	ready     []*entry   // waiting to be handed out, by offset
	line      []*Source  // those that want a message, in turn
	keys      map[string]*keyOut
	published int64         // messages published so far: the next offset
	unsettled int           // published and not settled: waiting or handed out
	changed   chan struct{} // closed at the next change; nil while nobody waits for one
}

// entry is a published message in its queue.
type entry struct {
	offset    int64
	message   *handler.Message
	delivered bool // handed out before
}

// keyOut is what is handed out of one key. Guarded by the queue's mutex.
type keyOut struct {
	run   *run // to whom
	count int
	back  bool // one of them was returned: no more of it until the others have ended
}

// NewQueue returns an empty queue. Its name is the topic of its messages.
func NewQueue(name string) *Queue {
	return &Queue{name: name, prefix: name + "/" + rand.Text() + "/", keys: map[string]*keyOut{}}
}

// KeepsOrder implements [handler.OrderedPublisher].
func (q *Queue) KeepsOrder() bool { return true }

// Publish puts copies of msgs at the end of the queue. As through a broker,
// the fields travel as headers too, and headers fill fields that are empty.
//
// A message's Origin.Time is kept as its broker time, so that a test can send
// an old one; it defaults to now.
func (q *Queue) Publish(ctx context.Context, msgs []*handler.Message) []error {
	results := make([]error, len(msgs))
	entries := make([]*entry, 0, len(msgs))
	for i, msg := range msgs {
		switch {
		case msg == nil:
			results[i] = handler.Permanent(fmt.Errorf("publish to queue %q: %w", q.name, errNoMessage))
		case ctx.Err() != nil:
			results[i] = fmt.Errorf("publish message %.255q to queue %q: %w", msg.ID, q.name, context.Cause(ctx))
		default:
			entries = append(entries, &entry{message: sent(msg)})
		}
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range entries {
		e.offset = q.published
		e.message.Origin = handler.Origin{
			Transport: "memory",
			Topic:     q.name,
			Offset:    e.offset,
			Position:  q.prefix + strconv.FormatInt(e.offset, 10),
			Time:      e.message.Origin.Time,
		}
		q.published++
	}
	q.unsettled += len(entries)
	q.ready = append(q.ready, entries...)
	q.notify()
	return results
}

// Wait blocks until every message that was published is settled, or until ctx
// ends.
func (q *Queue) Wait(ctx context.Context) error {
	for {
		q.mu.Lock()
		unsettled, changed := q.unsettled, q.change()
		q.mu.Unlock()
		if unsettled == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for queue %q: %d messages are not settled: %w", q.name, unsettled, context.Cause(ctx))
		}
	}
}

// next returns where the next message for s is, or -1 if there is none or
// another source is before it. Callers hold q.mu.
func (q *Queue) next(s *Source) int {
	for _, other := range q.line {
		if other.paused {
			continue
		}
		i := slices.IndexFunc(q.ready, func(e *entry) bool { return q.free(e, other.run) })
		switch {
		case other == s:
			return i
		case i >= 0:
			return -1
		}
	}
	return -1
}

// free reports whether e may be handed out to r without upsetting the order of
// its key. Callers hold q.mu.
func (q *Queue) free(e *entry, r *run) bool {
	out := q.keys[string(e.message.Key)]
	return out == nil || out.run == r && !out.back
}

// handOut counts e as handed out to r. Callers hold q.mu.
func (q *Queue) handOut(e *entry, r *run) {
	key := e.message.Key
	if len(key) == 0 {
		return
	}
	out := q.keys[string(key)]
	if out == nil {
		out = &keyOut{run: r}
		q.keys[string(key)] = out
	}
	out.count++
}

// ended counts e as no longer handed out; it may come back. Callers hold q.mu.
func (q *Queue) ended(e *entry, back bool) {
	key := e.message.Key
	out := q.keys[string(key)]
	if out == nil {
		return
	}
	out.back = out.back || back
	if out.count--; out.count == 0 {
		delete(q.keys, string(key))
	}
}

// putBack returns an entry to its place among the waiting. Callers hold q.mu.
func (q *Queue) putBack(e *entry) {
	q.ended(e, true)
	i, _ := slices.BinarySearchFunc(q.ready, e, func(a, b *entry) int { return cmp.Compare(a.offset, b.offset) })
	q.ready = slices.Insert(q.ready, i, e)
}

// change returns a channel that is closed at the next change. Callers hold q.mu.
func (q *Queue) change() <-chan struct{} {
	if q.changed == nil {
		q.changed = make(chan struct{})
	}
	return q.changed
}

// notify wakes everybody who waits for a change. Callers hold q.mu.
func (q *Queue) notify() {
	if q.changed != nil {
		close(q.changed)
		q.changed = nil
	}
}

// sent returns msg as a broker would have received it.
func sent(msg *handler.Message) *handler.Message {
	c := clone(msg)
	c.Headers = cloneHeaders(msg.WriteHeaders())
	c.ReadHeaders()
	if c.Origin.Time.IsZero() {
		c.Origin.Time = time.Now()
	}
	return c
}

// clone returns a message that shares no byte with msg. Nil stays nil: a
// tombstone is not an empty payload.
func clone(msg *handler.Message) *handler.Message {
	c := *msg
	c.Key = slices.Clone(msg.Key)
	c.Payload = slices.Clone(msg.Payload)
	c.Headers = cloneHeaders(msg.Headers)
	return &c
}

func cloneHeaders(h handler.Headers) handler.Headers {
	c := slices.Clone(h)
	for i := range c {
		c[i].Value = slices.Clone(c[i].Value)
	}
	return c
}
