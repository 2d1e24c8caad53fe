package main

import (
	"context"
	"fmt"
	"slices"
)

// side is one of the two that are compared: it works for one round and returns
// its rate in messages per second.
type side struct {
	name string
	rate func(context.Context) (float64, error)
}

// pairs measures two sides in turn, and which one begins alternates too, so
// that a machine that gets slower does not get slower for one of them only.
// The ratio is taken within each pair; the median of these is the result.
func (b *bench) pairs(ctx context.Context, ours, theirs side) (result, error) {
	var ratios, ourRates, theirRates []float64
	for i := range b.rounds {
		order := []side{ours, theirs}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		rates := map[string]float64{}
		for _, s := range order {
			rate, err := s.rate(ctx)
			if err != nil {
				return result{}, fmt.Errorf("round %d, %s: %w", i+1, s.name, err)
			}
			rates[s.name] = rate
		}
		ratios = append(ratios, rates[ours.name]/rates[theirs.name])
		ourRates = append(ourRates, rates[ours.name])
		theirRates = append(theirRates, rates[theirs.name])
	}
	return result{
		value:  median(ratios),
		digits: 3,
		details: []string{
			fmt.Sprintf("min %.3f, max %.3f of %d pairs", slices.Min(ratios), slices.Max(ratios), len(ratios)),
			fmt.Sprintf("[%s %.0f/s, %s %.0f/s]", ours.name, median(ourRates), theirs.name, median(theirRates)),
		},
	}, nil
}

// oneAfterTheOther is the rate of moving messages at rate a and then handling
// them at rate b, on cores that both share.
func oneAfterTheOther(a, b float64) float64 { return 1 / (1/a + 1/b) }
