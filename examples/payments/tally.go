package main

import (
	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

// tally counts what is sent, without looking at what becomes of it.
type tally struct {
	produced, distinct int64
	seen               map[content]struct{}
}

// content is what makes two callbacks copies of each other: id, type and what of the
// body is the same in each.
type content struct {
	id          dedup.ID
	fingerprint int64
}

// add counts a callback. One without a usable id is one of its own: nothing tells its
// copies from others.
func (t *tally) add(c callback) {
	t.produced++
	if c.id == "" {
		t.distinct++
		return
	}
	stable := webhook.Stripe().Fingerprint(&handler.Message{Payload: c.body})
	k := content{dedup.MessageID(c.id), dedup.Fingerprint(c.kind, stable)}
	if _, known := t.seen[k]; known {
		return
	}
	if t.seen == nil {
		t.seen = make(map[content]struct{})
	}
	t.seen[k] = struct{}{}
	t.distinct++
}
