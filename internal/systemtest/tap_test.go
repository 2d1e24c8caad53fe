package systemtest_test

import (
	"context"
	"sync"

	"github.com/semel-go/semel/handler"
)

// rowHeader names a message of a test whose id is nothing to go by.
const rowHeader = "row"

// nameOf is how a test knows a message: by its row, else by its id.
func nameOf(msg *handler.Message) string {
	if row, ok := msg.Headers.First(rowHeader); ok {
		return string(row)
	}
	return msg.ID
}

// tap counts what passes between a source and the engine. It is safe for
// concurrent use.
type tap struct {
	handler.Source
	handler.Pauser

	mu        sync.Mutex // guards the fields below
	delivered map[string]int
	settled   map[string]int
	returned  map[string]int
	sums      passed
}

// passed is how many deliveries went either way.
type passed struct{ delivered, settled, returned int }

func newTap(src handler.Source) *tap {
	return &tap{
		Source: src, Pauser: src.(handler.Pauser),
		delivered: map[string]int{}, settled: map[string]int{}, returned: map[string]int{},
	}
}

// Run implements [handler.Source].
func (tp *tap) Run(ctx context.Context, sink handler.Sink) error {
	return tp.Source.Run(ctx, tappedSink{sink, tp})
}

// KeepsOrder implements [handler.OrderedSource].
func (tp *tap) KeepsOrder() error { return tp.Source.(handler.OrderedSource).KeepsOrder() }

// PauseRecalls implements [handler.RecallingPauser].
func (tp *tap) PauseRecalls() bool {
	r, ok := tp.Source.(handler.RecallingPauser)
	return ok && r.PauseRecalls()
}

func (tp *tap) count(counts map[string]int, sum *int, name string, by int) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	counts[name] += by
	*sum += by
}

// passed returns the sums.
func (tp *tap) passed() passed {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return tp.sums
}

// inFlight is how many deliveries the engine has.
func (tp *tap) inFlight() int {
	p := tp.passed()
	return p.delivered - p.settled - p.returned
}

// deliveries is how often a message was delivered.
func (tp *tap) deliveries(name string) int {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return tp.delivered[name]
}

// mostReturns is how often the message was returned that was returned most.
func (tp *tap) mostReturns() int {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	most := 0
	for _, n := range tp.returned {
		most = max(most, n)
	}
	return most
}

type tappedSink struct {
	sink handler.Sink
	tap  *tap
}

// Deliver implements [handler.Sink].
func (s tappedSink) Deliver(ctx context.Context, d *handler.Delivery) error {
	tp, name := s.tap, nameOf(d.Message)
	tapped := *d
	tapped.Settled = func() {
		tp.count(tp.settled, &tp.sums.settled, name, 1) // before: what the source acknowledges was counted
		d.Settled()
	}
	tapped.Returned = func(err error) {
		tp.count(tp.returned, &tp.sums.returned, name, 1)
		d.Returned(err)
	}
	tp.count(tp.delivered, &tp.sums.delivered, name, 1) // before: it can be settled before Deliver returns
	err := s.sink.Deliver(ctx, &tapped)
	if err != nil {
		tp.count(tp.delivered, &tp.sums.delivered, name, -1)
	}
	return err
}
