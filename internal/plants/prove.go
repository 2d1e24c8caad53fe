package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// result is what came of one plant.
type result struct {
	plant plant
	err   error // why it was not caught, by all its proofs
}

func (r result) caught() bool { return r.err == nil }

// String is the line that is printed.
func (r result) String() string {
	var by []string
	for _, p := range r.plant.proofs {
		if !slices.Contains(by, p.test) {
			by = append(by, p.test)
		}
	}
	return fmt.Sprintf("PLANT %s caught=%t by=%s", r.plant.name, r.caught(), strings.Join(by, ","))
}

// job is one run of one proof.
type job struct {
	name string
	do   func() error
	err  error
}

// prove runs all proofs of all plants, a few at once: each with its plant, and
// each once without.
func prove(ctx context.Context, plants []plant, progress io.Writer) []result {
	var jobs []*job
	add := func(name string, do func() error) *job {
		j := &job{name: name, do: do}
		jobs = append(jobs, j)
		return j
	}
	needed := make([][]*job, len(plants)) // what must go well for a plant to be caught
	healthy := map[string]*job{}
	for i, pl := range plants {
		for _, p := range pl.proofs {
			if healthy[p.String()] == nil {
				healthy[p.String()] = add("without a plant    "+p.String(), func() error { return p.passes(ctx) })
			}
			catching := add(fmt.Sprintf("%-18s %s", pl.name, p), func() error { return p.catches(ctx, pl) })
			needed[i] = append(needed[i], catching, healthy[p.String()])
		}
	}
	runAll(jobs, progress)

	results := make([]result, len(plants))
	for i, pl := range plants {
		results[i].plant = pl
		for _, j := range needed[i] {
			results[i].err = errors.Join(results[i].err, j.err)
		}
	}
	return results
}

// runAll runs the jobs in their order, a few at once.
func runAll(jobs []*job, progress io.Writer) {
	var mu sync.Mutex // guards progress
	var group sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, j := range jobs {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			began := time.Now()
			j.err = j.do()
			verdict := "well"
			if j.err != nil {
				verdict = j.err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(progress, "%5.1fs  %-90s %s\n", time.Since(began).Seconds(), j.name, verdict)
		})
	}
	group.Wait()
}
