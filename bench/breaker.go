package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/breaker/httpbreaker"
)

// breakerRequests is how many requests are timed at once.
const breakerRequests = 100_000

// breakerOverhead is what a request pays for our transport: its time through it,
// minus its time without. The base answers at once, with a body of a few bytes that
// is read and closed.
func (b *bench) breakerOverhead(ctx context.Context) (result, error) {
	ours := httpbreaker.New(httpbreaker.Config{Base: instantBase{}})
	for _, base := range []http.RoundTripper{instantBase{}, ours} { // warms up
		if _, err := timeRequests(ctx, base, breakerRequests/10); err != nil {
			return result{}, err
		}
	}
	var own, allocs, ourNs, bareNs []float64
	for i := range b.rounds {
		sides := []http.RoundTripper{instantBase{}, ours}
		if i%2 == 1 {
			slices.Reverse(sides)
		}
		took := make(map[bool]requestCost)
		for _, side := range sides {
			cost, err := timeRequests(ctx, side, breakerRequests)
			if err != nil {
				return result{}, err
			}
			took[side == http.RoundTripper(ours)] = cost
		}
		own = append(own, took[true].ns-took[false].ns)
		allocs = append(allocs, took[true].allocs-took[false].allocs)
		ourNs, bareNs = append(ourNs, took[true].ns), append(bareNs, took[false].ns)
	}
	return result{
		value: median(own),
		details: []string{
			fmt.Sprintf("min %.0f, max %.0f of %d pairs", slices.Min(own), slices.Max(own), len(own)),
			fmt.Sprintf("%.1f allocations", median(allocs)),
			fmt.Sprintf("[%.0f ns through ours, %.0f ns without]", median(ourNs), median(bareNs)),
		},
	}, nil
}

// instantBase stands for the network.
type instantBase struct{}

func (instantBase) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("done")), Request: req}, nil
}

// requestCost is per request.
type requestCost struct{ ns, allocs float64 }

func timeRequests(ctx context.Context, base http.RoundTripper, n int) (requestCost, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://bank.example/charges", http.NoBody)
	if err != nil {
		return requestCost{}, err
	}
	req.Header.Set("Idempotency-Key", "k1")
	var buf [64]byte
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range n {
		resp, err := base.RoundTrip(req)
		if err != nil {
			return requestCost{}, err
		}
		for err == nil {
			_, err = resp.Body.Read(buf[:])
		}
		if err := resp.Body.Close(); err != nil {
			return requestCost{}, err
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return requestCost{
		ns:     float64(took.Nanoseconds()) / float64(n),
		allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
	}, nil
}
