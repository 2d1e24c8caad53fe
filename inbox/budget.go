package inbox

import (
	"context"
	"sync"
)

// budget bounds the messages, and the bytes of their payloads, that one run
// holds. One message is always let in, however large it is. They are let in as
// they come: else small ones would use up the room that a large one waits for.
type budget struct {
	maxMessages, maxBytes int

	turn chan struct{} // one place: held by the one that looks for room

	mu       sync.Mutex // guards what follows
	messages int
	bytes    int
	room     chan struct{} // closed when something is given back; nil while nobody waits
}

func newBudget(maxMessages, maxBytes int) *budget {
	return &budget{maxMessages: maxMessages, maxBytes: maxBytes, turn: make(chan struct{}, 1)}
}

// take waits until there is room for a message of size bytes.
func (b *budget) take(ctx context.Context, stopping <-chan struct{}, size int) error {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-stopping:
		return ErrDraining
	}
	for {
		room, ok := b.try(size)
		if ok {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-stopping:
			return ErrDraining
		}
	}
}

func (b *budget) try(size int) (room <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.messages == 0 || (b.messages < b.maxMessages && b.bytes+size <= b.maxBytes) {
		b.messages++
		b.bytes += size
		return nil, true
	}
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return b.room, false
}

func (b *budget) give(size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages--
	b.bytes -= size
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}
