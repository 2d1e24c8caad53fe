package main

import (
	"context"
	"fmt"
	"slices"
)

// side is one of the two that are compared: it works for one round and returns
// what it came to: a rate in messages per second, for most.
type side struct {
	name    string
	measure func(context.Context) (float64, error)
}

// comparison is how the numbers of a pair become one, and how they are printed.
type comparison struct {
	of     func(ours, theirs float64) float64
	digits int    // of what comes out
	format string // of the number of a side
}

func ratio(format string) comparison {
	return comparison{of: func(ours, theirs float64) float64 { return ours / theirs }, digits: 3, format: format}
}

func difference(format string) comparison {
	return comparison{of: func(ours, theirs float64) float64 { return ours - theirs }, digits: 2, format: format}
}

// pairs compares rates.
func (b *bench) pairs(ctx context.Context, ours, theirs side) (result, error) {
	return b.compare(ctx, ratio("%.0f/s"), ours, theirs)
}

// compare measures two sides in turn, and which one begins alternates too, so
// that a machine that gets slower does not get slower for one of them only.
// They are compared within each pair; the median of these is the result.
func (b *bench) compare(ctx context.Context, c comparison, ours, theirs side) (result, error) {
	var values, ourNumbers, theirNumbers []float64
	for i := range b.rounds {
		order := []side{ours, theirs}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		numbers := map[string]float64{}
		for _, s := range order {
			number, err := s.measure(ctx)
			if err != nil {
				return result{}, fmt.Errorf("round %d, %s: %w", i+1, s.name, err)
			}
			numbers[s.name] = number
		}
		values = append(values, c.of(numbers[ours.name], numbers[theirs.name]))
		ourNumbers = append(ourNumbers, numbers[ours.name])
		theirNumbers = append(theirNumbers, numbers[theirs.name])
	}
	return result{
		value:  median(values),
		digits: c.digits,
		details: []string{
			fmt.Sprintf("min %.*f, max %.*f of %d pairs", c.digits, slices.Min(values), c.digits, slices.Max(values), len(values)),
			fmt.Sprintf("[%s "+c.format+", %s "+c.format+"]", ours.name, median(ourNumbers), theirs.name, median(theirNumbers)),
		},
	}, nil
}

// oneAfterTheOther is the rate of moving messages at rate a and then handling
// them at rate b, on cores that both share.
func oneAfterTheOther(a, b float64) float64 { return 1 / (1/a + 1/b) }
