package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// answerLimit is how long the endpoint may take, whatever the broker does.
const answerLimit = 300 * time.Millisecond

// impatient is how many reviewers there are to one that sends twice at once.
const impatient = 5

// reviewers approve merchants over HTTP, as many a second as they are told.
type reviewers struct {
	endpoint string
	client   *http.Client

	mu       sync.Mutex // guards what follows
	away     bool       // the broker
	approved []string   // merchants that were told to be approved
	again    int        // approvals of one that was approved already
	refused  int        // approvals that were rolled back
	up, down []time.Duration
}

// work approves the merchants of these ids.
func (r *reviewers) work(ctx context.Context, ids []string, rate int) error {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	g, ctx := errgroup.WithContext(ctx)
	for i, id := range ids {
		times := 1
		if i%impatient == 0 {
			times = 2
		}
		for range times {
			g.Go(func() error { return r.approve(ctx, id) })
		}
		select {
		case <-ctx.Done():
			return g.Wait()
		case <-tick.C:
		}
	}
	return g.Wait()
}

func (r *reviewers) approve(ctx context.Context, id string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.endpoint+"/merchants/"+id+"/approval", nil)
	if err != nil {
		return err
	}
	req.Header.Set("If-Match", `"1"`)
	began := time.Now()
	resp, err := r.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask for the approval of merchant %q: %w", id, err)
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	_ = resp.Body.Close()
	return r.note(id, resp.StatusCode, time.Since(began), said)
}

func (r *reviewers) note(id string, status int, took time.Duration, said []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		r.down = append(r.down, took)
	} else {
		r.up = append(r.up, took)
	}
	switch status {
	case http.StatusCreated:
		r.approved = append(r.approved, id)
	case http.StatusOK:
		r.again++
	case http.StatusConflict:
		r.refused++
	default:
		return fmt.Errorf("ask for the approval of merchant %q: the answer is %d %s", id, status, said)
	}
	return nil
}

// brokerIs tells whether the broker is away.
func (r *reviewers) brokerIs(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = away
}

// answers is how long answers took.
type answers []time.Duration

// all are all answers so far.
func (r *reviewers) all() answers {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.up, r.down)
}

// p99 is the time within which 99 of 100 answers came.
func (a answers) p99() time.Duration {
	if len(a) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(a))
	return sorted[(len(sorted)*99+99)/100-1]
}

// late counts the answers that took too long.
func (a answers) late() (n int) {
	for _, took := range a {
		if took > answerLimit {
			n++
		}
	}
	return n
}

func (a answers) String() string {
	if len(a) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d answers, 99 of 100 within %s, the slowest %s", len(a), a.p99().Round(time.Millisecond), slices.Max(a).Round(time.Millisecond))
}
