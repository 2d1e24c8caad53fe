package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/transports/memory"
)

// memoryBroker is a queue in this process. Each child is a source of it, at
// the other end of a pipe; when the child dies its source is aborted, and what
// it had not answered goes back into the queue.
type memoryBroker struct{ *memory.Queue }

func openMemory(topic string) broker { return memoryBroker{memory.NewQueue(topic)} }

func (b memoryBroker) close(context.Context) error { return nil }

func (b memoryBroker) attach(cmd *exec.Cmd) (detach func(), err error) {
	childMessages, messages, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answers, childAnswers, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childMessages.Close(), messages.Close())
	}
	cmd.ExtraFiles = []*os.File{childMessages, childAnswers} // wire.MessagesFD, wire.AnswersFD

	source := memory.NewSource(b.Queue)
	remote := &remoteSink{frames: json.NewEncoder(messages), out: map[int]*handler.Delivery{}, listened: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	var pumps sync.WaitGroup
	pumps.Go(func() { _ = source.Run(ctx, remote) }) // ends by Abort, or idle by stop
	pumps.Go(func() { remote.listen(answers) })
	return func() {
		closeExtra(cmd) // if it never started
		_ = messages.Close()
		// The pipe is read to its end first: what the child answered counts.
		<-remote.listened
		source.Abort()
		stop()
		pumps.Wait()
		_ = answers.Close()
	}, nil
}

// remoteSink is a child, seen from the queue: it takes everything at once.
type remoteSink struct {
	frames   *json.Encoder
	listened chan struct{} // closed when the child has answered for the last time

	mu     sync.Mutex // guards the fields below
	number int
	out    map[int]*handler.Delivery
}

// Deliver implements [handler.Sink]. Source.Run calls it from one goroutine.
func (s *remoteSink) Deliver(_ context.Context, d *handler.Delivery) error {
	s.mu.Lock()
	s.number++
	f := wire.Frame{Number: s.number, Message: d.Message}
	s.out[f.Number] = d
	s.mu.Unlock()
	_ = s.frames.Encode(f) // into a broken pipe: the abort takes it back
	return nil
}

// listen settles and returns what the child answers, until it has ended.
func (s *remoteSink) listen(answers io.Reader) {
	defer close(s.listened)
	decoder := json.NewDecoder(answers)
	for {
		var a wire.Answer
		if decoder.Decode(&a) != nil {
			return
		}
		s.mu.Lock()
		d := s.out[a.Number]
		delete(s.out, a.Number)
		s.mu.Unlock()
		switch {
		case d == nil: // answered twice: the engine must not, and the count will tell
		case a.Settled:
			d.Settled()
		default:
			d.Returned(errReturned)
		}
	}
}

// errReturned is what the queue is told; the reason stays in the child.
var errReturned = errors.New("returned by the child")
