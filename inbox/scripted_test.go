package inbox_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// scripted is a source under the test's control. It follows the contract: Run
// returns when every delivery was answered.
type scripted struct {
	sink chan handler.Sink
	out  sync.WaitGroup

	mu       sync.Mutex
	answers  map[string]string // id → settled or the error it was returned with
	answered map[string]int
}

func newScripted() *scripted {
	return &scripted{sink: make(chan handler.Sink, 1), answers: map[string]string{}, answered: map[string]int{}}
}

func (s *scripted) Run(ctx context.Context, sink handler.Sink) error {
	s.sink <- sink
	<-ctx.Done()
	s.out.Wait()
	return nil
}

func (s *scripted) delivery(msg *handler.Message, revoked <-chan struct{}) *handler.Delivery {
	s.out.Add(1)
	answer := func(text string) {
		s.mu.Lock()
		s.answers[msg.ID] = text
		s.answered[msg.ID]++
		s.mu.Unlock()
		s.out.Done()
	}
	return &handler.Delivery{
		Message:  msg,
		Settled:  func() { answer("settled") },
		Returned: func(err error) { answer(err.Error()) },
		Revoked:  revoked,
	}
}

func (s *scripted) answer(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.answered[id]; n > 1 {
		return fmt.Sprintf("answered %d times", n)
	}
	return s.answers[id]
}

// started is a running Run.
type started struct {
	sink handler.Sink
	stop context.CancelFunc
	done chan error
}

func start(t *testing.T, in *inbox.Inbox, s *scripted) *started {
	t.Helper()
	return startSource(t, in, s, s)
}

// startSource runs a source that is made of s.
func startSource(t *testing.T, in *inbox.Inbox, src handler.Source, s *scripted) *started {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &started{stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- in.Run(ctx, src) }()
	select {
	case r.sink = <-s.sink:
	case err := <-r.done:
		t.Fatalf("Run ended at once: %v", err)
	}
	t.Cleanup(cancel)
	return r
}

func (r *started) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(deadline):
		t.Fatal("Run did not return")
		return nil
	}
}

// blocking is a handler whose runs the test lets go.
type blocking struct {
	running atomic.Int32
	release chan struct{}
}

func (h *blocking) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	h.running.Add(1)
	select {
	case <-h.release:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return effect(context.WithoutCancel(ctx), tx, msg)
}
