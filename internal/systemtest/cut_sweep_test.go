package systemtest_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/faultproxy"
)

const (
	cutMessages = 20
	cutWorkers  = 2 // of each consumer
	cutAtOnce   = 6 // consumers: they mostly wait
)

// cutSweep consumes a few messages again and again, each time with a new
// consumer whose connection to the broker is cut at another frame.
type cutSweep struct {
	framing faultproxy.Framing
	addr    string // of the broker

	// kind names a frame; "" is one that does not count.
	kind func(frame []byte) string
	// running and stopping are kinds that must be among those that are cut,
	// before and after the stop, of each side whose frames are cut.
	running, stopping map[faultproxy.Side][]string
	// last also cuts the last frame of a kind that came before the stop.
	last bool
	// commits is an acknowledgement that can be made on another connection: a
	// stop leaves what was not begun, and no more.
	commits bool

	// timed is a kind of frame that comes by the clock, and when we stop.
	timed string

	// grouped is a kind of frame of which one may do for several: how many there
	// are is chance.
	grouped string

	// place makes what a consumer of its own consumes, with the messages in it.
	place func(t *testing.T, name string) cutPlace

	db   *testBundle
	pool *pgxpool.Pool
}

// cutPlace is a queue, or a topic and a group, of one consumer.
type cutPlace interface {
	source(addr string) handler.Source
	left() (int, error)       // not acknowledged, once there is no consumer
	abandoned() (bool, error) // whether the broker knows of no consumer any more
}

// cutPoint is a frame: the n-th of its kind, from the beginning or after the stop.
type cutPoint struct {
	side   faultproxy.Side
	moment faultproxy.Moment
	kind   string
	n      int
	late   bool // after the stop
}

func (p cutPoint) String() string {
	when := map[bool]string{true: "at the end"}[p.late]
	return fmt.Sprintf("cut %s %s %d of side %d %s", p.moment, p.kind, p.n, p.side, when)
}

// run sweeps over all frames that a consumer sees with no cut.
func (s *cutSweep) run(t *testing.T, name string) {
	t.Helper()
	s.db = setupDatabase(t)
	s.pool = s.db.NewPool(t, cutAtOnce*(cutWorkers+1))
	var points []cutPoint
	for side := range s.running {
		early, late := s.look(t, side)
		require.Subset(t, slices.Collect(maps.Keys(early)), s.running[side], "before the stop")
		require.Subset(t, slices.Collect(maps.Keys(late)), s.stopping[side], "after the stop")
		points = append(append(points, s.points(side, early, false)...), s.points(side, late, true)...)
	}

	consumers := make([]*cutConsumer, len(points))
	for i, p := range points {
		consumers[i] = s.consumer(t, fmt.Sprintf("%s-%d", name, i), p)
	}
	errs := make([]error, len(points))
	var all sync.WaitGroup
	slots := make(chan struct{}, cutAtOnce)
	for i, c := range consumers {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := c.live(t.Context()); err != nil {
				errs[i] = fmt.Errorf("%s: %w", c.point, err)
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))

	before, after, stopped, runs := 0, 0, 0, 0
	for _, c := range consumers {
		runs += c.runs
		if c.point.late {
			stopped++
		}
		if c.point.moment == faultproxy.Before {
			before++
		} else {
			after++
		}
	}
	t.Logf("CUT scenario=%s frames=%d before=%d after=%d while_stopping=%d started_again=%d lost=0 doubled=0",
		name, len(points), before, after, stopped, runs-len(points))
}

// look consumes with no cut and returns how many frames of each kind there
// were before the stop and after it.
func (s *cutSweep) look(t *testing.T, side faultproxy.Side) (early, late map[string]int) {
	t.Helper()
	var seen [2]map[string]int
	for i := range seen {
		c := s.consumer(t, fmt.Sprintf("look-%d-%d", side, i), cutPoint{side: side, late: i == 1})
		require.NoError(t, c.live(t.Context()))
		seen[i] = c.seen
	}
	return seen[0], seen[1]
}

// points are the frames to cut: of many of a kind the first two, and perhaps
// the last. The others differ from these by nothing but their number.
func (s *cutSweep) points(side faultproxy.Side, seen map[string]int, late bool) []cutPoint {
	var points []cutPoint
	for _, kind := range slices.Sorted(maps.Keys(seen)) {
		if late && !slices.Contains(s.stopping[side], kind) {
			continue // by chance: what goes back while we stop may come again
		}
		picked := []int{1, 2}
		if late && (s.timed == kind || s.grouped == kind) {
			picked = picked[:1] // whether its time comes once more before the last is chance
		}
		if s.last && !late && s.grouped != kind {
			picked = append(picked, seen[kind])
		}
		for _, n := range slices.Compact(picked) {
			if n > seen[kind] {
				continue
			}
			points = append(points, cutPoint{side, faultproxy.Before, kind, n, late})
			if side == faultproxy.FromClient {
				points = append(points, cutPoint{side, faultproxy.After, kind, n, late})
			}
		}
	}
	return points
}
