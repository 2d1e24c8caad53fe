package rabbitmq

import (
	"sync"
	"time"
)

// flight counts the deliveries that are out. Unlike a WaitGroup it can be
// waited for with a deadline. It is safe for concurrent use.
type flight struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n becomes 0; nil while nobody waits
}

func (f *flight) add() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
}

func (f *flight) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	if f.n == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
}

func (f *flight) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// over returns a channel that is closed when nothing is out. Nothing may be
// added meanwhile.
func (f *flight) over() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		over := make(chan struct{})
		close(over)
		return over
	}
	if f.idle == nil {
		f.idle = make(chan struct{})
	}
	return f.idle
}

// wait waits until nothing is out, at most until deadline; zero is no deadline.
// Nothing may be added meanwhile.
func (f *flight) wait(deadline time.Time) bool {
	over := f.over()
	var late <-chan time.Time
	if !deadline.IsZero() {
		late = time.After(time.Until(deadline))
	}
	select {
	case <-over:
	case <-late:
	}
	return f.count() == 0
}
