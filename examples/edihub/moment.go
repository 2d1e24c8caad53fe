package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// moment is when a process is killed: it stops there, tells the example so, and
// waits. It is put around what the process uses, so that nothing of that knows.
// Nothing here is to be copied.
type moment struct {
	name string
	left atomic.Int64
}

// at is the n-th time that something happens, and never for 0.
func at(name string, n int64) *moment {
	m := &moment{name: name}
	m.left.Store(n)
	return m
}

func (m *moment) reached() {
	if m.left.Add(-1) == 0 {
		fmt.Println(m.name)
		select {} // until SIGKILL
	}
}

// momentStore is a store with a moment after an object is written, or read.
type momentStore struct {
	outbox.ArchiveStore
	written, read *moment
}

func (s momentStore) Create(ctx context.Context, name string, data []byte, retainUntil time.Time) error {
	err := s.ArchiveStore.Create(ctx, name, data, retainUntil)
	if err == nil && s.written != nil {
		s.written.reached()
	}
	return err
}

func (s momentStore) Read(ctx context.Context, name string) ([]byte, error) {
	data, err := s.ArchiveStore.Read(ctx, name)
	if err == nil && s.read != nil {
		s.read.reached()
	}
	return data, err
}

// beforeAnswer is a moment before an MDN leaves, which says that all is committed.
func beforeAnswer(h http.Handler, m *moment) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(momentWriter{w, m}, r)
	})
}

type momentWriter struct {
	http.ResponseWriter
	answer *moment
}

func (w momentWriter) WriteHeader(status int) {
	if status == http.StatusOK && w.Header().Get("Date") != "" { // only a journaled message has one that is not the clock's
		w.answer.reached()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w momentWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// momentPublisher has a moment when events are on the broker and nobody has noted it.
type momentPublisher struct {
	handler.OrderedPublisher
	confirmed *moment
}

func (p momentPublisher) Publish(ctx context.Context, msgs []*handler.Message) []error {
	errs := p.OrderedPublisher.Publish(ctx, msgs)
	p.confirmed.reached()
	return errs
}
