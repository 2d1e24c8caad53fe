package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// resource is something that a process can hold more and more of.
type resource int

const (
	rss resource = iota
	heap
	goroutines
	descriptors
	sessionsOf
	resourceCount
)

// resources are their names, and by how much each may grow whatever it was: so
// much is the difference between a quiet moment and a busy one. Memory that
// the runtime has not given back is no leak of ours, so rss has a wide floor;
// heap is what is in use after a collection.
var resources = [resourceCount]struct {
	name  string
	floor float64
}{
	rss:         {"rss_mb", 16},
	heap:        {"heap_mb", 4},
	goroutines:  {"goroutines", 25},
	descriptors: {"fds", 8},
	sessionsOf:  {"pg_connections", 3},
}

// maxGrowth is what may be added to a resource between the second tenth of the
// samples and the last.
const maxGrowth = 0.10

// trend is how a resource went.
type trend struct {
	resource    resource
	first, last float64 // medians of the second tenth and of the last
	max         float64
	slope       float64 // per hour, by least squares, without the first tenth
}

// minSamples is how many samples make a trend: two for each tenth.
const minSamples = 20

// newTrend judges at least minSamples samples.
func newTrend(r resource, samples []sample) trend {
	t := trend{resource: r}
	tenth := len(samples) / 10
	t.first = median(r, samples[tenth:2*tenth])
	t.last = median(r, samples[len(samples)-tenth:])
	for _, s := range samples {
		t.max = max(t.max, s.values[r])
	}
	t.slope = slope(r, samples[tenth:])
	return t
}

// flat reports whether it has not grown, or too little to say so.
func (t trend) flat() bool {
	growth := t.last - t.first
	return growth <= t.first*maxGrowth || growth <= resources[t.resource].floor
}

// String is the line for machines.
func (t trend) String() string {
	return fmt.Sprintf("SOAK resource=%s first=%.1f last=%.1f max=%.1f slope_per_hour=%.1f flat=%t",
		resources[t.resource].name, t.first, t.last, t.max, t.slope, t.flat())
}

func median(r resource, samples []sample) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, s.values[r])
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}

func slope(r resource, samples []sample) float64 {
	n := float64(len(samples))
	var sumX, sumY, sumXY, sumXX float64
	for _, s := range samples {
		x, y := float64(s.at)/float64(time.Hour), s.values[r]
		sumX, sumY, sumXY, sumXX = sumX+x, sumY+y, sumXY+x*y, sumXX+x*x
	}
	below := n*sumXX - sumX*sumX
	if below == 0 || math.IsNaN(below) {
		return 0
	}
	return (n*sumXY - sumX*sumY) / below
}
