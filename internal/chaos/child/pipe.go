package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
)

// pipeSource is the child's end of the memory broker: messages come through
// one pipe, and what became of them goes back through another. The parent
// delivers again what was not answered when the child died.
type pipeSource struct {
	messages io.Reader
	out      sync.WaitGroup

	mu      sync.Mutex // guards answers
	answers *json.Encoder
}

func newPipeSource(messages io.Reader, answers io.Writer) *pipeSource {
	return &pipeSource{messages: messages, answers: json.NewEncoder(answers)}
}

// KeepsOrder implements [handler.OrderedSource]: the pipe does, and the queue in
// the parent.
func (s *pipeSource) KeepsOrder() error { return nil }

// Run implements [handler.Source].
func (s *pipeSource) Run(ctx context.Context, sink handler.Sink) error {
	frames := make(chan wire.Frame)
	broken := make(chan error, 1) // room for the one error: nobody may be there to take it
	go func() {
		decoder := json.NewDecoder(s.messages)
		for {
			var f wire.Frame
			if err := decoder.Decode(&f); err != nil {
				broken <- fmt.Errorf("read from the parent's queue: %w", err)
				return
			}
			select {
			case frames <- f:
			case <-ctx.Done(): // the parent takes it back when we are gone
				return
			}
		}
	}()
	defer s.out.Wait()
	for {
		select {
		case f := <-frames:
			s.deliver(ctx, sink, f)
		case err := <-broken:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *pipeSource) deliver(ctx context.Context, sink handler.Sink, f wire.Frame) {
	s.out.Add(1)
	answer := func(settled bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.answers.Encode(wire.Answer{Number: f.Number, Settled: settled})
		s.out.Done()
	}
	err := sink.Deliver(ctx, &handler.Delivery{
		Message:  f.Message,
		Settled:  func() { answer(true) },
		Returned: func(error) { answer(false) },
	})
	if err != nil {
		answer(false)
	}
}
