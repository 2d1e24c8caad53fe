package main

import (
	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
)

// tally counts what is published, without looking at what becomes of it.
type tally struct {
	produced, distinct int64
	seen               map[content]struct{}
}

// content is what makes two messages copies of each other: id, type and payload.
type content struct {
	id          dedup.ID
	fingerprint int64
}

// add counts a message. One without a usable id is a message of its own:
// nothing tells its copies from others.
func (t *tally) add(msg *handler.Message) {
	t.produced++
	if dedup.CheckID(msg.ID) != nil {
		t.distinct++
		return
	}
	c := content{dedup.MessageID(msg.ID), dedup.Fingerprint(msg.Type, msg.Payload)}
	if _, known := t.seen[c]; known {
		return
	}
	if t.seen == nil {
		t.seen = make(map[content]struct{})
	}
	t.seen[c] = struct{}{}
	t.distinct++
}
