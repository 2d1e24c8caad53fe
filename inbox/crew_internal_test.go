package inbox

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A goroutine that is free runs the next function, with the stack it has.
func TestCrew_UsesGoroutinesAgain(t *testing.T) {
	t.Parallel()

	ended := make(chan struct{})
	defer close(ended)
	c := newCrew(ended)
	ran := make(chan struct{})
	c.do(func() { ran <- struct{}{} })
	<-ran
	for range 100 {
		select {
		case c.work <- func() { ran <- struct{}{} }: // nobody else receives from work
			<-ran
		case <-time.After(time.Minute):
			require.Fail(t, "the goroutine has gone")
		}
	}
}

// A function that ends its goroutine, or never returns, keeps no other waiting.
func TestCrew_LosesGoroutines(t *testing.T) {
	t.Parallel()

	ended := make(chan struct{})
	defer close(ended)
	c := newCrew(ended)
	stuck := make(chan struct{})
	defer close(stuck)
	var done sync.WaitGroup
	for range 10 {
		done.Add(2)
		c.do(func() { defer done.Done(); runtime.Goexit() })
		c.do(func() { <-stuck })
		c.do(done.Done)
	}
	done.Wait()
}
