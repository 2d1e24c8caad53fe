package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// heads fills keys with a dead message each, k000-1, and those behind it: k000-2
// and so on. It returns the ids of the dead letters.
func (b *testBundle) heads(t *testing.T, in *inbox.Inbox, n, behind int) (letters []int64) {
	t.Helper()
	for i := range n {
		key := fmt.Sprintf("k%03d", i)
		for j := range 1 + behind {
			want := handler.Stored
			if j == 0 {
				want = handler.Dead
			}
			outcome, err := in.Process(t.Context(), keyed(fmt.Sprintf("%s-%d", key, j+1), key))
			require.NoError(t, err)
			require.Equal(t, want, outcome)
		}
	}
	for _, l := range b.letters(t) {
		letters = append(letters, l.ID)
	}
	require.Len(t, letters, n)
	return letters
}

// ofKeys are the effects, by key, in their order.
func (s *sequence) ofKeys(t *testing.T) map[string][]string {
	t.Helper()
	seen := make(map[string][]string)
	for _, id := range s.seen(t) {
		seen[id[:4]] = append(seen[id[:4]], id)
	}
	return seen
}

// Case U1: the same dead letter replayed from two tabs, and in a bulk at the same
// time: one effect (ServiceControl#4797). Two processes work the inbox, and a
// third person asks the service itself.
func TestReplay_FromTwoTabs(t *testing.T) {
	t.Parallel()

	const n = 100
	b := setup(t)
	var mended atomic.Bool
	h := b.sequence(t, func(msg *handler.Message) error {
		if !mended.Load() {
			return handler.Permanent(errors.New("no such order"))
		}
		return nil
	})
	cfg := inbox.Config{Ordering: inbox.Strict, Retry: retries}
	one, two := b.inboxOn(t, b.NewPool(t, 6), "shipping", h.handle, cfg), b.inboxOn(t, b.NewPool(t, 6), "shipping", h.handle, cfg)
	letters := b.heads(t, one, n, 2)
	mended.Store(true)
	works(t, one)
	works(t, two)

	store := inbox.NewStore(b.Schema)
	var wg sync.WaitGroup
	all := func(replay func(id int64) error) {
		wg.Go(func() {
			for _, id := range letters {
				err := replay(id)
				if !errors.Is(err, inbox.ErrNoDeadLetter) { // the others were faster
					require.NoError(t, err)
				}
			}
		})
	}
	for _, tab := range []string{"ann", "bob"} {
		all(func(id int64) error { return store.Replay(t.Context(), b.Pool, id, tab) })
	}
	all(func(id int64) error {
		_, err := two.Replay(t.Context(), id)
		return err
	})
	wg.Go(func() {
		done, err := store.ReplayAll(t.Context(), b.Pool, letters, inbox.ReplayAllConfig{By: "eve", Rate: -1})
		require.NoError(t, err)
		require.Equal(t, n, len(done.Begun)+len(done.Refused))
		require.Zero(t, done.DiedAgain)
	})
	wg.Wait()

	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	for key, seen := range h.ofKeys(t) {
		require.Equal(t, []string{key + "-1", key + "-2", key + "-3"}, seen)
	}
	require.Len(t, h.seen(t), 3*n)
	for _, l := range b.letters(t) {
		require.Equal(t, dlq.Resolved, l.State)
		require.EqualValues(t, 1, l.Count)
	}
}

// A dead message is discarded while it is replayed: it takes effect once, and who
// discards is told that a replay was faster; or it is discarded, and never takes
// effect. What waits behind it goes on once and in order, whichever it was.
func TestDiscard_RacesReplay(t *testing.T) {
	t.Parallel()

	for _, ordering := range []inbox.Ordering{inbox.PerKey, inbox.Strict} {
		t.Run(ordering.String(), func(t *testing.T) {
			t.Parallel()

			discardRacesReplay(t, ordering)
		})
	}
}

func discardRacesReplay(t *testing.T, ordering inbox.Ordering) {
	t.Helper()
	const n = 200
	behind := 0
	if ordering == inbox.Strict {
		behind = 2
	}
	b := setup(t)
	// When the discarding begins: at once, or at a point of the replay.
	points := []inbox.EventKind{0, inbox.Claimed, inbox.Handled, inbox.Leaving, inbox.Committing, inbox.Committed}
	began := make(map[string]chan struct{}, n)
	var mended atomic.Bool
	var mu sync.Mutex // guards what follows
	reached := make(map[string]bool)
	observer := inbox.ObserverFunc(func(_ context.Context, e inbox.Event) {
		if !mended.Load() || e.Message == nil || began[e.Message.ID] == nil {
			return
		}
		var i int
		_, err := fmt.Sscanf(e.Message.ID, "k%d-1", &i)
		require.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == points[i%len(points)] && !reached[e.Message.ID] {
			reached[e.Message.ID] = true
			close(began[e.Message.ID])
		}
	})
	h := b.sequence(t, func(*handler.Message) error {
		if !mended.Load() {
			return handler.Permanent(errors.New("no such order"))
		}
		return nil
	})
	cfg := inbox.Config{Ordering: ordering, Retry: retries, Observer: observer}
	one, two := b.inboxOn(t, b.NewPool(t, 6), "shipping", h.handle, cfg), b.inboxOn(t, b.NewPool(t, 6), "shipping", h.handle, cfg)
	letters := b.heads(t, one, n, behind)
	for i := range n {
		id := fmt.Sprintf("k%03d-1", i)
		began[id] = make(chan struct{})
		if points[i%len(points)] == 0 {
			close(began[id])
			reached[id] = true
		}
	}
	mended.Store(true)
	works(t, one)
	works(t, two)

	store := inbox.NewStore(b.Schema)
	discarded := make([]error, n)
	queue := make(chan int)
	var people sync.WaitGroup
	for range 8 {
		people.Go(func() {
			for i := range queue {
				var pair sync.WaitGroup
				pair.Go(func() {
					var err error
					if i%4 == 0 {
						_, err = two.Replay(t.Context(), letters[i])
					} else {
						err = store.Replay(t.Context(), b.Pool, letters[i], "ann")
					}
					if !errors.Is(err, inbox.ErrNoDeadLetter) { // discarded before it had begun
						require.NoError(t, err)
					}
				})
				pair.Go(func() {
					<-began[fmt.Sprintf("k%03d-1", i)]
					discarded[i] = store.Discard(t.Context(), b.Pool, letters[i], "bob")
				})
				pair.Wait()
			}
		})
	}
	for i := range n {
		queue <- i
	}
	close(queue)
	people.Wait()

	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	seen, wins := h.ofKeys(t), 0
	for i, l := range b.letters(t) {
		key := fmt.Sprintf("k%03d", i)
		var want []string
		if behind > 0 {
			want = []string{key + "-2", key + "-3"}
		}
		if discarded[i] == nil {
			require.Equal(t, dlq.Discarded, l.State, key)
			wins++
		} else {
			require.ErrorIs(t, discarded[i], inbox.ErrNoDeadLetter, key)
			require.Equal(t, dlq.Resolved, l.State, key)
			want = slices.Insert(want, 0, key+"-1")
		}
		require.Equal(t, want, seen[key])
	}
	t.Logf("%d discarded, %d replayed", wins, n-wins)
	require.Positive(t, wins)
	require.Less(t, wins, n)
	for _, outcome := range []handler.Outcome{handler.Processed, handler.Skipped} {
		require.Positive(t, b.count(t, `SELECT count(*) FROM processed_messages WHERE outcome = $1 AND message_text LIKE '%-1'`, int(outcome)))
	}
	require.Zero(t, b.count(t, `SELECT count(*) FROM processed_messages WHERE outcome NOT IN ($1, $2)`, int(handler.Processed), int(handler.Skipped)))
}
