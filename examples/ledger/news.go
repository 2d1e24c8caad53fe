package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/semel-go/semel/examples/internal/example"
)

// newsEvery is how often a process tells how far it is.
const newsEvery = 100 * time.Millisecond

// news is how far a process is, a line of its output.
type news struct {
	Process int
	Done    bool // it has nothing more to do

	// Of the writer: since when postings come, how many are booked, in how many
	// transactions, how many have come and wait, how long all that took, and for how
	// much of it each of its connections was busy.
	Began                           time.Time
	Postings, Transactions, Waiting int64
	Took, Busy                      time.Duration

	// Of a relay: attempts that failed, or found no broker, and how often another relay
	// had its shards, or its events, when it thought that they were its own.
	Failed, Contended int64
}

// tell tells the news of this process now and then until ctx ends, and once more.
func tell(ctx context.Context, out io.Writer, latest func() news) error {
	for ended := false; !ended; {
		ended = example.Wait(ctx, newsEvery) != nil
		n := latest()
		n.Process = os.Getpid()
		if err := json.NewEncoder(out).Encode(n); err != nil {
			return fmt.Errorf("tell how far the work is: %w", err)
		}
	}
	return nil
}

// desk knows the latest news of each process, also of those that were killed. It is
// safe for concurrent use.
type desk struct {
	mu     sync.Mutex // guards latest
	latest map[int]news
}

// hear takes a line of a process.
func (d *desk) hear(line string) {
	var n news
	if json.Unmarshal([]byte(line), &n) != nil {
		return // a process that was killed in the middle of a line
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.latest == nil {
		d.latest = make(map[int]news)
	}
	d.latest[n.Process] = n
}

// sum is the news of all processes together.
func (d *desk) sum() (sum news) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.latest {
		sum.Done = sum.Done || n.Done
		if !n.Began.IsZero() { // there is one writer
			sum.Began = n.Began
		}
		sum.Postings += n.Postings
		sum.Transactions += n.Transactions
		sum.Waiting += n.Waiting
		sum.Took += n.Took
		sum.Busy += n.Busy
		sum.Failed += n.Failed
		sum.Contended += n.Contended
	}
	return sum
}

// processes are all that told something, by what they do.
func (d *desk) processes() (writers, relays []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for pid, n := range d.latest {
		if n.Began.IsZero() {
			relays = append(relays, pid)
		} else {
			writers = append(writers, pid)
		}
	}
	return writers, relays
}
