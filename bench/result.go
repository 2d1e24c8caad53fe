package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// target is the bound that a benchmark's value is held to.
type target struct {
	bound float64
	upper bool // the value must not be above it
	none  bool // it is only printed
}

func atLeast(bound float64) target { return target{bound: bound} }
func atMost(bound float64) target  { return target{bound: bound, upper: true} }

func noTarget() target { return target{none: true} }

func (t target) met(value float64) bool {
	if t.upper {
		return value <= t.bound
	}
	return value >= t.bound
}

func (t target) verdict(value float64) string {
	switch {
	case t.none:
		return "no target"
	case t.met(value):
		return fmt.Sprintf("target %s: met", t)
	default:
		return fmt.Sprintf("target %s: missed", t)
	}
}

func (t target) String() string {
	if t.upper {
		return fmt.Sprintf("<= %g", t.bound)
	}
	return fmt.Sprintf(">= %g", t.bound)
}

// result is what was measured. Its value is judged as it is printed.
type result struct {
	value   float64
	digits  int // of value, behind the point
	details []string
}

func (r result) line(name string, t target) string {
	scale := math.Pow10(r.digits)
	value := math.Round(r.value*scale) / scale
	details := append([]string{t.verdict(value)}, r.details...)
	return fmt.Sprintf("BENCH %s %.*f (%s)", name, r.digits, value, strings.Join(details, "; "))
}

// median is of the values as they are, unrounded: the middle one, or the mean
// of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
