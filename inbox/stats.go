package inbox

import (
	"sync/atomic"

	"github.com/semel-go/semel/handler"
)

// Stats are counts since the inbox was made, and what it does right now.
type Stats struct {
	Processed  int64
	Superseded int64 // strictly older than one already handled; not run
	Skipped    int64 // a handler decided not to run them
	Duplicates int64
	Mismatches int64
	Dead       int64
	Stored     int64 // into the inbox: for a later attempt, behind their key, or by Store

	FailedAttempts int64 // attempts that failed, also those followed by a success; less those given back
	Reruns         int64 // runs repeated after a serialization failure or a deadlock
	Outages        int64 // times the intake was paused
	TooOld         int64 // messages that nobody can tell any more whether they were handled

	Running int // handlers that run now
	Waiting int // messages taken that wait for their key, a worker or their next attempt
	Stuck   int // goroutines of handlers that ignored the end of their context
	Paused  bool

	GatesClosed []string // dependencies of [Config.Gates] that are away
}

// counters are the fields of Stats that only ever change by addition.
type counters struct {
	outcomes       [handler.Mismatch + 1]atomic.Int64
	failedAttempts atomic.Int64
	reruns         atomic.Int64
	outages        atomic.Int64
	tooOld         atomic.Int64
	stuck          atomic.Int64
	paused         atomic.Int64 // runs that are paused
}

// Stats returns a snapshot. It is safe for concurrent use.
func (in *Inbox) Stats() Stats {
	c := &in.counters
	running, waiting := in.lanes.counts()
	return Stats{
		Processed:      c.outcomes[handler.Processed].Load(),
		Superseded:     c.outcomes[handler.Superseded].Load(),
		Skipped:        c.outcomes[handler.Skipped].Load(),
		Duplicates:     c.outcomes[handler.Duplicate].Load(),
		Mismatches:     c.outcomes[handler.Mismatch].Load(),
		Dead:           c.outcomes[handler.Dead].Load(),
		Stored:         c.outcomes[handler.Stored].Load(),
		FailedAttempts: c.failedAttempts.Load(),
		Reruns:         c.reruns.Load(),
		Outages:        c.outages.Load(),
		TooOld:         c.tooOld.Load(),
		Running:        running,
		Waiting:        waiting,
		Stuck:          int(c.stuck.Load()),
		Paused:         c.paused.Load() > 0,
		GatesClosed:    in.keeper.away(),
	}
}
